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

    let request: HTTPRequest
    private let beforeSend: (@Sendable () -> Bool)?
    var completion: HTTPClient.Completion
    private let isCancelled = Atomic(false)

    private(set) var submittedAt = BootInstant(milliseconds: 0)
    private(set) var deadline = BootInstant(milliseconds: 0)
    private var limits = ResponseLimits()

    /// Its place in the order of submission.
    ///
    /// ``TransferQueue`` changes it and the stage.
    var number: UInt64 = 0
    var stage = Stage.new
    private(set) var result: Result<HTTPResponse, HTTPFailure>?

    /// The time at which a connection was looked for.
    private var startedAt: BootInstant?
    /// `true` once bytes of the request might have been sent.
    private(set) var isIssued = false
    /// `true` if the request is the first on its connection.
    var opensConnection = false
    var http1: HTTP1Connection?
    var http2: HTTP2Connection?

    private(set) var status = 0
    /// `true` once all headers of the final response have arrived.
    private(set) var isHeadComplete = false
    private var head = ErasedBytes()
    private var body = ErasedBytes()
    /// The reason for which the client ended the request while its response was arriving.
    private var abortion: (kind: HTTPFailure.Kind, message: String)?

    /// The stream that carries the request over HTTP/2.
    var stream = HTTP2Stream()
    /// The number of times that a server refused to process the request.
    private var refusals = 0

    /// The number of refusals after which the request fails.
    private static let maximumRefusals = 3

    /// - Parameters:
    ///   - request: the request to send.
    ///   - beforeSend: called on the client's thread immediately before the request is sent. If it returns `false`, the
    ///     request fails as ``HTTPFailure/Kind/withheld``. It blocks every other request, so it must return at once.
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
    func prepare(at now: BootInstant, deadline: BootInstant, limits: ResponseLimits) {
        submittedAt = now
        self.deadline = deadline
        self.limits = limits
    }

    /// Asks for the end of the request.
    ///
    /// The client's thread sees it even if the command arrives before the request.
    func requestCancellation() {
        isCancelled.store(true, ordering: .releasing)
    }

    func start(at now: BootInstant) {
        startedAt = now
    }

    /// Makes the last checks that can prevent the request, immediately before it is sent.
    func checkBeforeSending(_ time: any TimeSource) throws(HTTPFailure) {
        guard !isCancelled.load(ordering: .acquiring) else {
            throw failure(.cancelled, "the request was cancelled")
        }
        guard beforeSend?() ?? true else { throw failure(.withheld, "beforeSend prevented the request") }
        guard time.sinceBoot < deadline else {
            throw failure(.expired, "the deadline passed before the request was sent")
        }
    }

    /// Notes that bytes of the request might be sent from now on.
    func issue() {
        isIssued = true
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

    /// Keeps the result; the caller gets it at the end of the client's round.
    func end(_ result: Result<HTTPResponse, HTTPFailure>) {
        guard self.result == nil else { return }
        self.result = result
    }

    /// Hands the result to the caller.
    func complete() {
        if let result { completion(result) }
    }
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
        guard !isHeadComplete else { return true }
        if unsafe line.starts(with: "HTTP/".utf8) { head.removeAll() }
        let fits = unsafe head.appendLine(line, limit: limits.headerBytes)
        if !fits { abortHead() }
        return fits
    }

    /// Begins a block of fields; those of an interim response are dropped.
    func beginFields() {
        stream.hasResponse = true
        guard takesFields else { return }
        head.removeAll()
        status = 0
    }

    /// Keeps a field as a line.
    ///
    /// Returns `false` if the headers are too long.
    func receiveField(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
        guard takesFields else { return true }
        let fits: Bool
        if unsafe name.first != UInt8(ascii: ":") {
            fits = unsafe head.appendField(name, value, limit: limits.headerBytes)
        } else if unsafe name.elementsEqual(":status".utf8) {
            status = unsafe value.reduce(0) { $0 * 10 + Int($1 &- UInt8(ascii: "0")) }
            fits = unsafe head.appendStatusLine(value, limit: limits.headerBytes)
        } else {
            fits = true
        }
        if !fits { abortHead() }
        return fits
    }

    func endFields() {
        if takesFields { endHead(status: status) }
    }

    /// `true` while the fields belong to a response; trailers are left out.
    private var takesFields: Bool { stream.end == nil && !isHeadComplete }

    /// Ends the headers of a response, which is final unless its status is below 200.
    ///
    /// libcurl 7.88 reads "HTTP/260000" as a status of five digits.
    func endHead(status: Int) {
        self.status = status
        isHeadComplete = (200...999).contains(status)
    }

    private func abortHead() {
        abort(.headersTooLarge, "the response's headers are longer than \(limits.headerBytes) bytes")
    }

    /// Keeps the body up to the limit, because the part that fits can hold a whole token.
    ///
    /// Returns `false` if it is too long.
    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let remaining = limits.bodyBytes - body.count
        guard bytes.count > remaining else {
            unsafe body.append(bytes)
            return true
        }
        unsafe body.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(remaining)))
        abort(.bodyTooLarge, "the response's body is longer than \(limits.bodyBytes) bytes")
        return false
    }

    /// Ends the request early, for the first reason given.
    func abort(_ kind: HTTPFailure.Kind, _ message: String) {
        abortion = abortion ?? (kind, message)
    }
}

// MARK: - Results

extension HTTPTransfer {
    /// Returns a failure, with the part of the response that has arrived.
    func failure(_ kind: HTTPFailure.Kind, code: Int? = nil, _ message: String) -> HTTPFailure {
        HTTPFailure(
            kind: kind,
            outcomeUnknown: isIssued,
            code: code,
            message: message,
            partialResponse: takeResponse()
        )
    }

    /// Returns the failure of a request that was ended early.
    var abortFailure: HTTPFailure? { abortion.map { failure($0.kind, $0.message) } }

    /// Returns the failure of a request whose deadline has passed.
    ///
    /// An unsent request counts as the server's timeout only if connecting took longer than the wait in this process.
    func expiry(at now: BootInstant) -> HTTPFailure {
        guard !isIssued else { return failure(.timeout, "no response within the deadline") }
        guard let startedAt, now - startedAt >= startedAt - submittedAt else {
            return failure(.expired, "the deadline passed before the request was sent")
        }
        return failure(.timeout, "no connection within the deadline")
    }

    /// Returns the final response with the received part of its body; `nil` before its headers are complete.
    func takeResponse() -> HTTPResponse? {
        guard isHeadComplete else { return nil }
        return HTTPResponse(
            status: status,
            body: HTTPBody(Self.take(&body)),
            httpVersion: http2 == nil ? .http1 : .http2,
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
