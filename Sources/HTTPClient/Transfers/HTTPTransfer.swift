internal import Base
internal import Crypto
private import Synchronization

/// One request on its way through an ``HTTPClient``, with what has arrived of its response.
///
/// Its caller makes it, submits it once, and can cancel it. `@unchecked Sendable` holds because the client's thread
/// alone touches what changes after that, except for the flag of the cancellation.
package final class HTTPTransfer: @unchecked Sendable {
    enum Stage {
        case new
        case waiting
        case inFlight
        case ended
    }

    private(set) var request: HTTPRequest
    private var beforeSend: (@Sendable () -> Bool)?
    var completion: HTTPClient.Completion
    private let isCancelled = Atomic(false)

    private(set) var submittedAt = BootInstant(milliseconds: 0)
    private(set) var deadline = BootInstant(milliseconds: 0)
    private var maximumHeaderBytes = 0
    private var maximumBodyBytes = 0

    /// Its place in the order of submission. ``TransferQueue`` changes it and the stage.
    var number: UInt64 = 0
    var stage = Stage.new
    private(set) var result: Result<HTTPResponse, HTTPError>?

    /// When a connection was looked for.
    var startedAt: BootInstant?
    /// `true` once bytes of the request might have been sent.
    var isIssued = false
    /// `true` if the request is the first on its connection.
    var opensConnection = false
    var http1: HTTP1Connection?
    var http2: HTTP2Connection?

    private(set) var status = 0
    /// `true` once all headers of the final response have arrived.
    private(set) var isHeadComplete = false
    private var head = ErasedBytes()
    /// The bytes of headers that were not kept, of interim responses and trailers.
    ///
    /// They have a limit of their own. A server can send them for as long as it likes, but the final response after
    /// some early hints must not be lost, because it might have the only copy of a refresh token.
    private var droppedHeaderBytes = 0
    private var body = ErasedBytes()
    /// Why the client ended the request while its response was arriving.
    private var abortion: (kind: HTTPError.Kind, message: String)?

    /// The stream that carries the request over HTTP/2.
    var stream = HTTP2Stream()
    /// How often a server refused to process the request.
    private var refusals = 0

    /// After so many refusals the request fails.
    private static let maximumRefusals = 3
    /// How many times the limit of the headers can be dropped. Together with the final headers it stays below 300 KiB,
    /// at which libcurl ends a response itself since 8.3.
    private static let droppedHeadLimit = 3

    /// - Parameters:
    ///   - request: the request to send.
    ///   - beforeSend: called on the client's thread immediately before the request is sent. If it returns `false`, the
    ///     request fails as ``HTTPError/Kind/withheld``. It blocks every other request, so it must return at once.
    ///   - completion: called once with the result, possibly before ``HTTPClient/submit(_:deadline:)`` returns.
    package init(
        _ request: HTTPRequest,
        beforeSend: (@Sendable () -> Bool)? = nil,
        completion: @escaping HTTPClient.Completion
    ) {
        self.request = request
        self.beforeSend = beforeSend
        self.completion = completion
    }
}

// MARK: - The way of a request

extension HTTPTransfer {
    /// Prepares the transfer for its way through a client.
    func prepare(at now: BootInstant, deadline: BootInstant, configuration: HTTPClient.Configuration) {
        submittedAt = now
        self.deadline = deadline
        maximumHeaderBytes = configuration.maximumHeaderBytes
        maximumBodyBytes = configuration.maximumBodyBytes
    }

    /// Asks for the end of the request.
    ///
    /// The client's thread sees it even if the command arrives before the request.
    func requestCancellation() {
        isCancelled.store(true, ordering: .releasing)
    }

    /// Makes the last checks that can prevent the request, immediately before it is sent.
    func checkBeforeSending(_ time: any TimeSource) throws(HTTPError) {
        guard !isCancelled.load(ordering: .acquiring) else {
            throw failure(.cancelled, "the request was cancelled")
        }
        guard beforeSend?() ?? true else { throw failure(.withheld, "beforeSend prevented the request") }
        guard time.sinceBoot < deadline else {
            throw failure(.expired, "the deadline passed before the request was sent")
        }
    }

    /// Prepares the request for another stream, if the server provably did not process it.
    ///
    /// Returns `false` if the request must not be sent again.
    ///
    /// A server that refuses a stream, or ends the connection before its number, has not processed the request
    /// (https://www.rfc-editor.org/rfc/rfc9113#section-8.7).
    func prepareRepeat() -> Bool {
        guard stream.isRefused, !stream.hasResponse else { return false }
        refusals += 1
        guard refusals < Self.maximumRefusals else { return false }
        stream = HTTP2Stream()
        http2 = nil
        isIssued = false
        return true
    }

    /// Keeps the result.
    ///
    /// The caller gets it at the end of the client's round.
    func end(_ result: Result<HTTPResponse, HTTPError>) {
        guard self.result == nil else { return }
        self.result = result
    }

    /// Hands the result to the caller, and releases everything that could hold a token.
    ///
    /// Callers keep a transfer until the answer is stored, to be able to cancel it.
    func complete(_ result: Result<HTTPResponse, HTTPError>) {
        let completion = completion
        self.completion = { _ in }
        beforeSend = nil
        request = HTTPRequest(request.pattern, body: nil)
        self.result = Self.delivered
        completion(result)
    }

    private static let delivered = Result<HTTPResponse, HTTPError>.failure(
        HTTPError(kind: .cancelled, message: "the result was delivered before")
    )
}

// MARK: - The response

extension HTTPTransfer {
    /// Keeps a header line as it came.
    ///
    /// Returns `false` if the headers are too long.
    ///
    /// A status line discards the lines before it, so that only the last response's headers remain. Trailers are left
    /// out.
    func receiveLine(_ line: UnsafeRawBufferPointer) -> Bool {
        if isHeadComplete {
            droppedHeaderBytes += line.count
        } else if unsafe line.starts(with: "HTTP/".utf8) {
            dropHead()
        }
        guard !hasDroppedTooMuch else { return abortDroppedHead() }
        guard !isHeadComplete else { return true }
        return unsafe head.appendLine(line, limit: maximumHeaderBytes) || abortHead()
    }

    private var maximumDroppedHeaderBytes: Int { maximumHeaderBytes * Self.droppedHeadLimit }
    private var hasDroppedTooMuch: Bool { droppedHeaderBytes > maximumDroppedHeaderBytes }

    private func dropHead() {
        droppedHeaderBytes += head.count
        head.removeAll()
    }

    /// Begins a block of fields.
    ///
    /// Those of an interim response are dropped.
    func beginFields() {
        stream.hasResponse = true
        guard takesFields else { return }
        dropHead()
        status = 0
    }

    /// Keeps a field as a line.
    ///
    /// Returns `false` if the headers are too long.
    func receiveField(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
        guard takesFields else { return true }
        guard !hasDroppedTooMuch else { return abortDroppedHead() }
        let fits: Bool
        if unsafe name.first != UInt8(ascii: ":") {
            fits = unsafe head.appendField(name: name, value: value, limit: maximumHeaderBytes)
        } else if unsafe name.elementsEqual(":status".utf8) {
            status = unsafe value.reduce(0) { $0 * 10 + Int($1 &- UInt8(ascii: "0")) }
            fits = unsafe head.appendStatusLine(value, limit: maximumHeaderBytes)
        } else {
            fits = true
        }
        return fits || abortHead()
    }

    func endFields() {
        if takesFields { endHead(status: status) }
    }

    /// `true` while the fields belong to a response. Trailers are left out.
    private var takesFields: Bool { stream.end == nil && !isHeadComplete }

    /// Ends the headers of a response, which is final unless its status is below 200.
    ///
    /// libcurl 7.88 reads "HTTP/260000" as a status of five digits.
    func endHead(status: Int) {
        self.status = status
        isHeadComplete = (200...999).contains(status)
    }

    /// Returns `false`, for the caller to return.
    private func abortHead() -> Bool {
        abort(.headersTooLarge, "the response's headers are longer than \(maximumHeaderBytes) bytes")
        return false
    }

    /// Returns `false`, for the caller to return.
    private func abortDroppedHead() -> Bool {
        let kinds = "the headers of interim responses, or the trailers,"
        abort(.headersTooLarge, "\(kinds) are longer than \(maximumDroppedHeaderBytes) bytes")
        return false
    }

    /// Keeps the body up to the limit, because the part that fits can hold a whole token.
    ///
    /// Returns `false` if it is too long.
    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard unsafe !body.appendBody(bytes, limit: maximumBodyBytes) else { return true }
        abort(.bodyTooLarge, "the response's body is longer than \(maximumBodyBytes) bytes")
        return false
    }

    /// Ends the request early, for the first reason given.
    func abort(_ kind: HTTPError.Kind, _ message: String) {
        abortion = abortion ?? (kind, message)
    }
}

// MARK: - Results

extension HTTPTransfer {
    /// Returns a failure, with the part of the response that has arrived.
    func failure(_ kind: HTTPError.Kind, code: Int? = nil, _ message: String) -> HTTPError {
        HTTPError(kind: kind, outcomeUnknown: isIssued, code: code, message: message, partialResponse: takeResponse())
    }

    /// Returns the failure of a request that was ended early.
    var abortFailure: HTTPError? { abortion.map { failure($0.kind, $0.message) } }

    /// Returns the failure of a request whose deadline has passed.
    ///
    /// An unsent request counts as the server's timeout only if connecting took longer than the wait in this process.
    func expiry(at now: BootInstant) -> HTTPError {
        guard !isIssued else { return failure(.timeout, "no response within the deadline") }
        guard let startedAt, now - startedAt >= startedAt - submittedAt else {
            return failure(.expired, "the deadline passed before the request was sent")
        }
        return failure(.timeout, "no connection within the deadline")
    }

    /// Returns the final response with the received part of its body, or `nil` before its headers are complete.
    func takeResponse() -> HTTPResponse? {
        guard isHeadComplete else { return nil }
        return HTTPResponse(
            status: status,
            body: HTTPBody(Self.take(&body)),
            isHTTP2: http2 != nil,
            newConnection: opensConnection,
            head: HTTPBody(Self.take(&head))
        )
    }

    private static func take(_ bytes: inout ErasedBytes) -> ErasedBytes {
        var taken = ErasedBytes()
        swap(&taken, &bytes)
        return taken
    }
}
