package import HTTPClient

/// The receiver of the worker's telemetry, which tests replace.
package protocol Collector: Sendable {
    /// Posts a body. A status of any kind is a response.
    func post(_ body: [UInt8]) async throws(HTTPError) -> CollectorResponse
}

/// A collector's endpoint for one signal.
package struct CollectorEndpoint: Collector {
    /// The default of OpenTelemetry's exporters (`OTEL_EXPORTER_OTLP_TIMEOUT`).
    package static let deadline: Duration = .seconds(10)

    private let http: HTTPClient
    private let pattern: RequestPattern

    /// Makes an endpoint that is called over a client for this collector alone. The headers can be secrets.
    package init(_ endpoint: Endpoint, headers: [CollectorHeader], over http: HTTPClient) {
        self.http = http
        pattern = RequestPattern(
            method: .post,
            endpoint: endpoint,
            headers: headers.ofRequest,
            isSecret: true
        )
    }

    package func post(_ body: [UInt8]) async throws(HTTPError) -> CollectorResponse {
        let response = try await http.send(HTTPRequest(pattern, body: HTTPBody(body)), deadline: Self.deadline)
        return CollectorResponse(response)
    }
}
