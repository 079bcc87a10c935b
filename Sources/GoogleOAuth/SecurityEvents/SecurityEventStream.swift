package import Base
import Crypto
package import HTTPClient

/// The stream of security events of a Cloud project: its receiver URL and status
/// (https://developers.google.com/identity/protocols/risc#configure_stream).
package struct SecurityEventStream: Sendable {
    /// The URL of Google's API for streams.
    package static let defaultEndpoint = "https://risc.googleapis.com"
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
    package func register(url: Endpoint) async throws(SecurityEventStreamFailure) {
        var configuration = JSONLine()
        configuration.object("delivery") { delivery in
            delivery.field("delivery_method", Self.pushMethod)
            delivery.field("url", url.url)
        }
        configuration.array("events_requested") { events in
            for type in SecurityEvent.EventType.all { events.element(type) }
        }
        _ = try await send(.post, "stream:update", configuration)
        var status = JSONLine()
        status.field("status", "enabled")
        _ = try await send(.post, "stream/status:update", status)
    }

    package func state() async throws(SecurityEventStreamFailure) -> StreamState {
        let configuration = try await send(.get, "stream")
        let status = try await send(.get, "stream/status")
        return StreamState(
            url: configuration["delivery"]?["url"]?.string,
            status: status["status"]?.string,
            events: configuration["events_requested"]?.array?.compactMap(\.string) ?? []
        )
    }

    /// Makes Google post a verification event with this text.
    package func verify(state: String) async throws(SecurityEventStreamFailure) {
        var body = JSONLine()
        body.field("state", state)
        _ = try await send(.post, "stream:verify", body)
    }

    private func send(
        _ method: RequestPattern.Method,
        _ path: String,
        _ body: JSONLine? = nil
    ) async throws(SecurityEventStreamFailure) -> JSONValue {
        let bearer: Secret
        do throws(RSAKeyError) {
            bearer = try account.bearer(for: Self.audience, at: time.now)
        } catch {
            throw SecurityEventStreamFailure(.unsigned, text: error.description)
        }
        let url: Endpoint
        do throws(EndpointError) {
            url = try endpoint.below("v1beta/\(path)")
        } catch {
            throw SecurityEventStreamFailure(.unreachable, text: error.description)
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
        do throws(HTTPFailure) {
            response = try await http.send(request)
        } catch {
            throw SecurityEventStreamFailure(.unreachable, text: error.description)
        }
        let answer = JSONValue.object(in: response.body.reveal())
        guard (200..<300).contains(response.status) else {
            throw SecurityEventStreamFailure(status: response.status, answer: answer)
        }
        return answer ?? .object([:])
    }
}
