import Base
import GoogleOAuth
import HTTPClient
package import Worker

/// `google-events`: manages the stream by which Google reports revoked tokens and accounts in danger.
extension CommandContext {
    package func manageGoogleEvents(_ options: GoogleEventsOptions) async throws -> ExitCode {
        let account = try Self.serviceAccount(in: options.serviceAccountFile)
        let endpoint = try Self.endpoint(options.endpoint ?? SecurityEventStream.defaultEndpoint)
        let http = try openHTTP()
        defer { http.shutDown() }
        let stream = SecurityEventStream(http: http, endpoint: endpoint, account: account, time: time)
        do {
            switch options.action {
            case .register(let url):
                let target = try Self.endpoint(url)
                try await stream.register(url: target)
                var line = JSONLine()
                line.field("url", "\(target)")
                line.array("events") { array in SecurityEvent.EventType.all.forEach { array.element($0) } }
                Output.standard.line(
                    options.isJSON ? line.text : "registered: Google posts security events to \(target)"
                )
            case .status:
                let state = try await stream.state()
                Output.standard.line(options.isJSON ? Self.json(of: state).text : Self.text(of: state))
            case .verify(let state):
                try await stream.verify(state: state)
                var line = JSONLine()
                line.field("state", state)
                Output.standard.line(
                    options.isJSON
                        ? line.text
                        : "requested: Google posts a verification event soon, which the metrics log then shows"
                )
            }
        } catch let failure as SecurityEventStreamFailure {
            throw CommandFailure(Self.exitCode(of: failure), failure.description)
        }
        return .success
    }

    private static func serviceAccount(in path: String) throws -> ServiceAccount {
        let file = try readPrivate(path, for: "--service-account-file", unreadable: .inputUnreadable)
        do throws(ServiceAccountError) {
            return try ServiceAccount(keyFile: file)
        } catch {
            throw CommandFailure(.badData, "\(path) is not the key of a service account: \(error)")
        }
    }

    private static func endpoint(_ text: String) throws -> Endpoint {
        do throws(EndpointError) {
            return try Endpoint(text)
        } catch {
            throw CommandFailure(.usage, error.description)
        }
    }

    private static func text(of state: SecurityEventStream.StreamState) -> String {
        let known = Set(SecurityEvent.EventType.all)
        let missing = SecurityEvent.EventType.all.filter { !state.events.contains($0) }
        var lines = [
            "status  \(state.status.map { DisplayedText($0).description } ?? "unknown")",
            "url     \(state.url.map { DisplayedText($0).description } ?? "none")",
            "events  \(state.events.count { known.contains($0) }) of \(known.count)",
        ]
        for type in missing { lines.append("missing \(type)") }
        if !missing.isEmpty { lines.append("run google-events register to ask for those as well") }
        return lines.joined(separator: "\n")
    }

    private static func json(of state: SecurityEventStream.StreamState) -> JSONLine {
        var line = JSONLine()
        line.fieldOrNull("status", state.status)
        line.fieldOrNull("url", state.url)
        line.array("events") { array in state.events.forEach { array.element($0) } }
        line.array("missing") { array in
            for type in SecurityEvent.EventType.all where !state.events.contains(type) { array.element(type) }
        }
        return line
    }

    private static func exitCode(of failure: SecurityEventStreamFailure) -> ExitCode {
        switch failure.reason {
        case .unreachable, .unavailable: .googleUnreachable
        case .malformed, .noStream: .badData
        case .unsigned, .unauthenticated, .forbidden: .configuration
        }
    }
}
