import Base
import Crypto
import GoogleOAuth
import HTTPClient

extension SecurityEventStream {
    /// Runs `body` with the stream by which Google reports revoked tokens and accounts in danger.
    static func with(
        _ arguments: CommandArguments,
        by context: CommandContext,
        _ body: (SecurityEventStream) async throws -> Void
    ) async throws -> ExitCode {
        let account = try serviceAccount(in: arguments.needed("service-account-file"))
        let endpoint = try endpoint(arguments["risc-endpoint"] ?? defaultEndpoint)
        let http = try context.openHTTP()
        defer { http.shutDown() }
        do {
            try await body(SecurityEventStream(http: http, endpoint: endpoint, account: account, time: context.time))
        } catch let failure as SecurityEventStreamError {
            let code: ExitCode =
                switch failure.reason {
                case .unreachable, .unavailable: .peerUnreachable
                case .malformed, .noStream: .badData
                case .unsigned, .unauthenticated, .forbidden: .configuration
                }
            throw CommandError(code, failure.description)
        }
        return .success
    }

    private static func serviceAccount(in path: String) throws -> ServiceAccount {
        let file = try readServiceAccount(path)
        do throws(FormatError) {
            return try ServiceAccount(keyFile: file)
        } catch {
            throw CommandError(.badData, "\(path) is not the key of a service account: \(error)")
        }
    }

    /// A file that only root can read goes through standard input.
    private static func readServiceAccount(_ path: String) throws -> Secret {
        let flag = "--service-account-file"
        guard path == "-" else { return try Secret.read(privateFile: path, for: flag, unreadable: .inputUnreadable) }
        do throws(FileError) {
            return try Secret.read(descriptor: 0)
        } catch {
            throw CommandError(.inputUnreadable, "\(flag): \(error)")
        }
    }

    static func endpoint(_ text: String) throws -> Endpoint {
        do throws(FormatError) {
            return try Endpoint(text)
        } catch {
            throw CommandError(.usage, error.description)
        }
    }
}
