internal import Base

/// One request on its way over HTTP/2: waiting for a stream, or on one.
final class HTTP2Exchange {
    let request: SubmittedRequest
    /// The fields of the request.
    let head: HTTP2RequestHead
    /// The time at which the transport got the request.
    let startedAt: BootInstant
    /// The stream that carries the request, and its connection.
    private(set) var stream: HTTP2Stream?
    private(set) var connection: HTTP2Connection?
    /// `true` once bytes of the request may have been sent.
    private(set) var isIssued = false
    /// `true` if the request is the first on its connection.
    private(set) var opensConnection = false
    /// The number of times that a server refused to process the request.
    private var refusals = 0
    private(set) var hasEnded = false

    /// The number of refusals after which the request fails.
    private static let mostRefusals = 3

    init(_ request: SubmittedRequest, head: HTTP2RequestHead, startedAt: BootInstant) {
        self.request = request
        self.head = head
        self.startedAt = startedAt
    }

    func begin(on stream: HTTP2Stream, of connection: HTTP2Connection) {
        self.stream = stream
        self.connection = connection
        isIssued = true
        opensConnection = opensConnection || connection.isUnused
    }

    func end() {
        hasEnded = true
    }

    /// Prepares the request for another stream, if the server provably did not process it; returns `false` if the
    /// request must not be sent again.
    ///
    /// A server that refuses a stream, or ends the connection before its number, has not processed the request
    /// (https://www.rfc-editor.org/rfc/rfc9113#section-8.7).
    func prepareRepeat() -> Bool {
        guard let stream, stream.isRefused, !stream.hasResponse else { return false }
        refusals += 1
        guard refusals < Self.mostRefusals else { return false }
        self.stream = nil
        connection = nil
        return true
    }
}

// MARK: - Results

extension HTTP2Exchange {
    var cost: TransferCost {
        TransferCost(
            connections: opensConnection ? 1 : 0,
            sent: stream?.sentBodyBytes ?? 0,
            received: stream?.receivedBodyBytes ?? 0
        )
    }

    /// Returns the response, or the reason why there is none, of a stream that has ended.
    func result(limits: HTTP2Limits) -> Result<HTTPResponse, HTTPFailure> {
        switch stream?.end {
        case .complete:
            guard let response = takeResponse() else { fallthrough }
            return .success(response)
        case nil, .cancelled:
            return .failure(failure(.receiveFailed, "the stream ended without a response"))
        case .reset(let code):
            let name = HTTP2Stream.name(ofCode: code)
            return .failure(failure(.receiveFailed, "the stream ended with \(name) before the response was complete"))
        case .bodyTooLarge:
            return .failure(
                failure(.bodyTooLarge, "the response's body is longer than \(limits.bodyBytes) bytes")
            )
        case .headersTooLarge:
            return .failure(
                failure(.headersTooLarge, "the response's headers are longer than \(limits.headerBytes) bytes")
            )
        }
    }

    /// Returns a failure, with the part of the response that has arrived.
    func failure(_ kind: HTTPFailure.Kind, code: UInt32? = nil, _ message: String) -> HTTPFailure {
        HTTPFailure(
            kind: kind,
            outcomeUnknown: isIssued,
            code: code.map { Int($0) },
            message: message,
            partialResponse: takeResponse()
        )
    }

    /// Returns the final response with the received part of its body; `nil` before its headers are complete.
    private func takeResponse() -> HTTPResponse? {
        guard let stream, stream.isHeadComplete else { return nil }
        return HTTPResponse(
            status: stream.status,
            body: HTTPBody(stream.takeBody()),
            httpVersion: .http2,
            newConnection: opensConnection,
            head: HTTPBody(stream.takeHead())
        )
    }
}
