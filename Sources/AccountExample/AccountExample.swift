import AccountClient
import Foundation

/// Acts as an app against a backend: all steps in one process, or one action of an app that is started several times.
///
/// It reads a Google access token from standard input to sign in, or the tokens of a session of its own. It prints its
/// steps, and never a token.
@main
enum AccountExample {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let baseURL = arguments.first.flatMap({ URL(string: $0) }) else { usage() }
        do {
            switch arguments.count {
            case 2 where arguments[1] == "own-session": try await ownSession(baseURL)
            case 1: try await ExampleRun(baseURL: baseURL).run(googleAccessToken: try readGoogleAccessToken())
            case 3:
                guard let action = StoredSession.Action(rawValue: arguments[2]) else { usage() }
                let folder = URL(fileURLWithPath: arguments[1], isDirectory: true)
                try await StoredSession(baseURL: baseURL, folder: folder).run(action)
            default: usage()
            }
        } catch {
            say("account-example: \(error)", to: .standardError)
            exit(1)
        }
    }

    /// Acts as an app that signs its users in elsewhere: reads its token, and the renewed one, before Google's.
    private static func ownSession(_ baseURL: URL) async throws {
        let (token, renewed) = (readLine(), readLine())
        let client = try AccountClient(baseURL: baseURL) { isRenewed in
            if isRenewed { say("the token was refused and renewed") }
            return isRenewed ? renewed : token
        }
        try await client.connectGoogle(GoogleTokens(accessToken: try readGoogleAccessToken()))
        say("connected: \(try await client.profile().isConnected)")
        try await client.disconnectGoogle()
        try await client.deleteAccount()
        say("deleted")
    }

    static func readGoogleAccessToken() throws -> String {
        guard let token = readLine(), !token.isEmpty else {
            throw ExampleError(description: "no Google access token on standard input")
        }
        return token
    }

    static func say(_ line: String, to file: FileHandle = .standardOutput) {
        file.write(Data("\(line)\n".utf8))
    }

    private static func usage() -> Never {
        let actions = StoredSession.Action.allCases.map(\.rawValue).joined(separator: " | ")
        say("usage: account-example BASE_URL [own-session | FOLDER_FOR_TOKENS (\(actions))]", to: .standardError)
        exit(64)
    }
}

/// A step that cannot begin, or with an unexpected result.
struct ExampleError: Error, CustomStringConvertible {
    let description: String
}
