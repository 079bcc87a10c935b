package import Base
import Crypto
package import HTTPClient

/// The stream of security events of a Cloud project: its receiver URL and status
/// (https://developers.google.com/identity/protocols/risc#configure_stream).
package struct SecurityEventStream: Sendable {
    /// The URL of Google's API for streams.
    package static let defaultEndpoint = "https://risc.googleapis.com"
    /// The command that makes the stream, or completes it.
    package static let registration =
        "refresh-worker google-events register --service-account-file FILE --url https://HOST/v1/google/security-events"
    private static let audience =
        "https://risc.googleapis.com/google.identity.risc.v1beta.RiscManagementService"
    private static let pushMethod = "https://schemas.openid.net/secevent/risc/delivery-method/push"

    /// The configuration and status of a stream.
    package struct StreamState: Hashable, Sendable {
        package var url: String?
        /// `enabled` or `disabled`.
        package var status: String?
        package var events: [String]
    }

    private let http: HTTPClient
    private let endpoint: Endpoint
    private let account: ServiceAccount
    private let time: any TimeSource

    package init(http: HTTPClient, endpoint: Endpoint, account: ServiceAccount, time: any TimeSource) {
        self.http = http
        self.endpoint = endpoint
        self.account = account
        self.time = time
    }

    /// Makes Google post all events that the worker reads to the URL.
    package func register(url: Endpoint) async throws(SecurityEventStreamError) {
        var configuration = JSONLine()
        configuration.object("delivery") { delivery in
            delivery.field("delivery_method", Self.pushMethod)
            delivery.field("url", url.url)
        }
        configuration.array("events_requested") { events in
            for type in SecurityEvent.EventType.all { events.element(type) }
        }
        _ = try await send(.post, path: "stream:update", body: configuration)
        var status = JSONLine()
        status.field("status", "enabled")
        _ = try await send(.post, path: "stream/status:update", body: status)
    }

    package func state() async throws(SecurityEventStreamError) -> StreamState {
        let configuration = try await send(.get, path: "stream")
        let status = try await send(.get, path: "stream/status")
        return StreamState(
            url: configuration["delivery"]?["url"]?.string,
            status: status["status"]?.string,
            events: configuration["events_requested"]?.array?.compactMap(\.string) ?? []
        )
    }

    /// Makes Google post a verification event with this text.
    package func verify(state: String) async throws(SecurityEventStreamError) {
        var body = JSONLine()
        body.field("state", state)
        _ = try await send(.post, path: "stream:verify", body: body)
    }

    private func send(
        _ method: RequestPattern.Method,
        path: String,
        body: JSONLine? = nil
    ) async throws(SecurityEventStreamError) -> JSONValue {
        let bearer: Secret
        do throws(CryptoError) {
            bearer = try account.bearer(for: Self.audience, at: time.now)
        } catch {
            throw SecurityEventStreamError(.unsigned, text: error.description)
        }
        let url: Endpoint
        do throws(FormatError) {
            url = try endpoint.below("v1beta/\(path)")
        } catch {
            throw SecurityEventStreamError(.unreachable, text: error.description)
        }
        let request = HTTPRequest(
            method: method,
            endpoint: url,
            headers: [
                ("Authorization", "Bearer \(bearer.reveal())"), ("Accept", "application/json"),
                ("Content-Type", "application/json"),
            ],
            body: body.map { HTTPBody($0.bytes) }
        )
        let response: HTTPResponse
        do throws(HTTPError) {
            response = try await http.send(request)
        } catch {
            throw SecurityEventStreamError(.unreachable, text: error.description)
        }
        let answer = JSONValue.object(in: response.body.reveal())
        guard (200..<300).contains(response.status) else {
            throw SecurityEventStreamError(status: response.status, answer: answer)
        }
        return answer ?? .object([:])
    }
}

/// The reason why Google did not perform a request about the stream, for an operator.
package struct SecurityEventStreamError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: Hashable, Sendable {
        /// The service account's key cannot sign.
        case unsigned
        case unreachable
        case malformed
        case unauthenticated
        case forbidden
        case noStream
        /// Google is overloaded or faulty. A later retry might help.
        case unavailable(status: Int)
    }

    private static let maximumText = 512

    package let reason: Reason
    /// The message of Google or of this machine, safe for a terminal.
    let text: String?

    init(_ reason: Reason, text: String? = nil) {
        self.reason = reason
        self.text = text.map { text in
            let shown = String(String.UnicodeScalarView(text.unicodeScalars.map { $0.disturbsTerminals ? " " : $0 }))
            return shown.capped(at: Self.maximumText)
        }
    }

    init(status: Int, answer: JSONValue?) {
        let reason: Reason =
            switch status {
            case 400: .malformed
            case 401: .unauthenticated
            case 403: .forbidden
            case 404: .noStream
            default: .unavailable(status: status)
            }
        self.init(reason, text: answer?["error"]?["message"]?.string)
    }

    package var description: String {
        guard let text else { return advice }
        return "\(advice) (\(text))"
    }

    private var advice: String {
        switch reason {
        case .unsigned: "the service account's key cannot sign"
        case .unreachable: "Google cannot be reached"
        case .malformed:
            "Google refuses the request: the URL must be https, on an authorized domain of the Cloud project"
        case .unauthenticated:
            "Google rejects the service account's key: it might have been deleted, or this machine's clock might be wrong"
        case .forbidden:
            """
            the service account has no permission: enable the RISC API in the Cloud project and give the account the role \
            roles/riscconfigs.admin; if the project uses Firebase with Google Sign-In, only Firebase can configure the \
            stream
            """
        case .noStream: "the project has no stream yet; run: \(SecurityEventStream.registration)"
        case .unavailable(let status): "Google has a temporary fault (status \(status)); try again later"
        }
    }
}
