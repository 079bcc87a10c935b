internal import Base
internal import CCurl
internal import Crypto

/// A handle with which libcurl carries a request, with the state of its current request; it is reused for later ones.
@safe
final class Transfer: EasyHandle {
    /// The reason for which a callback ended the transfer.
    ///
    /// libcurl does not report it.
    enum Abort {
        case late
        case repeated
        case bodyTooLarge
        case headersTooLarge
        case foldedHeader
        case needsNewHandle
    }

    var headerList: UnsafeMutablePointer<curl_slist>?
    /// The lasting pattern whose options the handle has.
    private var prepared: RequestPattern?
    var connectMilliseconds = 0
    private let time: any TimeSource

    private(set) var request: SubmittedRequest?
    /// The time at which libcurl got the request.
    private var startedAt = BootInstant(milliseconds: 0)
    private var head = ErasedBytes()
    private var body = ErasedBytes()
    /// `true` once libcurl has been allowed to send the request.
    private var isIssued = false
    /// `true` if libcurl may use the connection again after this request.
    private var mayKeepConnection = false
    /// `true` once the empty line that ends the headers has arrived.
    private var isHeadComplete = false
    private var abort: Abort?
    /// `true` once the handle has received headers, for this request or an earlier one.
    private var hasReceivedHeaders = false
    /// `true` if the connection of the current or last request speaks HTTP/2.
    private var isHTTP2 = false

    init(configuration: HTTPClient.Configuration, time: any TimeSource) throws(HTTPFailure) {
        self.time = time
        try super.init(configuration: configuration)
    }

    deinit {
        unsafe curl_slist_free_all(headerList)
    }

    /// Prepares the handle for a request.
    func prepare(for request: SubmittedRequest, at now: BootInstant) throws(HTTPFailure) {
        self.request = request
        startedAt = now
        let pattern = request.content.pattern
        if prepared !== pattern {
            clearOptions()
            try setOptions(of: pattern)
            try setHeaders(of: pattern)
            if pattern.isLasting { prepared = pattern }
        }
        try setDeadline(remaining: request.deadline - now)
        if mayKeepConnection {
            try set(CURLOPT_FORBID_REUSE, 1)
            mayKeepConnection = false
        }
        if pattern.method == .post { try setBody(request.content.body) }
    }

    /// Clears the request and its response; libcurl's connections stay with the multi handle.
    ///
    /// The options of a lasting pattern stay for its next request. The body, which holds a token, does not.
    func reset() {
        if !keepsOptions { clearOptions() }
        clearError()
        request = nil
        head = ErasedBytes()
        body = ErasedBytes()
        isIssued = false
        isHeadComplete = false
        abort = nil
    }

    /// `true` if the handle is prepared for a lasting pattern and no longer points to the body.
    private var keepsOptions: Bool {
        guard let prepared else { return false }
        guard prepared.method == .post else { return true }
        return unsafe ccurl_easy_set_pointer(easy, CURLOPT_POSTFIELDS, nil) == CURLE_OK
    }

    private func clearOptions() {
        unsafe curl_easy_reset(easy)
        unsafe curl_slist_free_all(headerList)
        unsafe headerList = nil
        prepared = nil
        connectMilliseconds = 0
        mayKeepConnection = false
    }
}

// MARK: - The end of a transfer

extension Transfer {
    /// Returns the result of the request for libcurl's code, and takes the response out.
    func result(code: UInt32) -> Result<HTTPResponse, HTTPFailure> {
        guard CURLcode(code) == CURLE_OK else { return .failure(failure(code: code)) }
        // libcurl 7.88 treats headers that were cut off by a lost connection as a response without a body.
        guard let response = takeResponse() else {
            let hasStatus = long(CURLINFO_RESPONSE_CODE) <= Self.highestStatus
            let reason =
                hasStatus ? "the response's headers were cut off" : "the response's status has over three digits"
            return .failure(failure(.receiveFailed, reason))
        }
        return .success(response)
    }

    /// Returns a failure that the loop decided on, and takes out the part of the response that has arrived.
    func failure(_ kind: HTTPFailure.Kind, _ message: String) -> HTTPFailure {
        HTTPFailure(
            kind: kind,
            outcomeUnknown: isIssued,
            message: message,
            partialResponse: takeResponse()
        )
    }

    /// Returns the failure of a request whose deadline has passed.
    func expiry() -> HTTPFailure {
        guard let (kind, message) = request?.expiry(isIssued: isIssued, startedAt: startedAt, now: time.sinceBoot)
        else {
            return failure(.timeout, "no response within the deadline")
        }
        return failure(kind, message)
    }

    private static let highestStatus = 999

    /// Returns the final response with the received part of its body; `nil` before its headers are complete.
    ///
    /// libcurl 7.88 reads "HTTP/260000" as a status of five digits.
    private func takeResponse() -> HTTPResponse? {
        let status = long(CURLINFO_RESPONSE_CODE)
        guard isHeadComplete, (200...Self.highestStatus).contains(status) else { return nil }
        let version: HTTPResponse.Version =
            switch long(CURLINFO_HTTP_VERSION) {
            case Int(CURL_HTTP_VERSION_1_0), Int(CURL_HTTP_VERSION_1_1): .http1
            case Int(CURL_HTTP_VERSION_2_0): .http2
            default: .other
            }
        return HTTPResponse(
            status: status,
            body: HTTPBody(take(&body)),
            httpVersion: version,
            newConnection: long(CURLINFO_NUM_CONNECTS) > 0,
            head: HTTPBody(take(&head))
        )
    }

    var cost: TransferCost {
        TransferCost(
            connections: long(CURLINFO_NUM_CONNECTS),
            sent: size(CURLINFO_SIZE_UPLOAD_T),
            received: size(CURLINFO_SIZE_DOWNLOAD_T)
        )
    }

    private func failure(code: UInt32) -> HTTPFailure {
        switch abort {
        case .late:
            return failure(.expired, "the deadline passed before the request was sent")
        case .repeated:
            return failure(.receiveFailed, "the connection was lost without a response; the request is not repeated")
        case .bodyTooLarge:
            return failure(.bodyTooLarge, "the response's body is longer than \(configuration.maximumBodyBytes) bytes")
        case .headersTooLarge:
            return failure(
                .headersTooLarge,
                "the response's headers are longer than \(configuration.maximumHeaderBytes) bytes"
            )
        case .foldedHeader:
            return failure(.receiveFailed, "a header of the response continues on a second line")
        case .needsNewHandle:
            return failure(.other, "the request was not sent because it needs a new handle")
        case nil:
            return HTTPFailure(
                kind: HTTPFailure.Kind(curlCode: code, requestIssued: isIssued),
                outcomeUnknown: isIssued,
                code: Int(code),
                message: message(code: code),
                partialResponse: takeResponse()
            )
        }
    }

    private func take(_ bytes: inout ErasedBytes) -> ErasedBytes {
        var taken = ErasedBytes()
        swap(&taken, &bytes)
        return taken
    }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        guard unsafe ccurl_easy_get_long(easy, info, &value) == CURLE_OK else { return 0 }
        return value
    }

    private func size(_ info: CURLINFO) -> Int {
        var value: curl_off_t = 0
        guard unsafe ccurl_easy_get_size(easy, info, &value) == CURLE_OK else { return 0 }
        return Int(value)
    }
}

// MARK: - Callbacks from libcurl

extension Transfer {
    /// Decides, once the connection is made and nothing is sent, whether the request may be sent.
    ///
    /// libcurl sends a request again on its own when a reused connection is lost without a response. A refresh token
    /// may be spent by then, so only a GET may be sent twice. A request that was delayed past its deadline (by a
    /// stopped process or a sleeping machine) is not sent at all.
    private func mayIssue() -> Bool {
        guard let request else { return false }
        guard !isIssued || request.content.pattern.method == .get else {
            abort = .repeated
            return false
        }
        guard time.sinceBoot < request.deadline else {
            abort = .late
            return false
        }
        isHTTP2 = unsafe ccurl_connection_is_http2(easy) == 1
        guard isHTTP2 || !hasReceivedHeaders else {
            abort = .needsNewHandle
            return false
        }
        guard allowReuseOverHTTP2() else { return false }
        isIssued = true
        return true
    }

    /// `true` if the handle may serve another request.
    ///
    /// libcurl 7.88 keeps a pointer to the last header of the previous response after freeing it, and appends a first
    /// header line that begins with a blank to it (fixed in 8.1: https://github.com/curl/curl/pull/11103). HTTP/2
    /// headers cannot begin with a blank. Over HTTP/1.1 each response gets a handle that has not received a header
    /// before.
    var isReusable: Bool { isHTTP2 || !hasReceivedHeaders }

    /// `true` if the request was not sent because its connection speaks HTTP/1.1 and the handle has received headers
    /// before.
    var needsNewHandle: Bool { abort == .needsNewHandle && !isIssued }

    /// Lets libcurl keep the connection if it speaks HTTP/2; every other connection carries one request.
    ///
    /// An HTTP/1.1 response does not say which request it belongs to. If a server sends an unsolicited response, even
    /// after the next request is written, it would be taken for that request's response: one user would get another
    /// user's token.
    private func allowReuseOverHTTP2() -> Bool {
        guard isHTTP2 else { return true }
        mayKeepConnection = true
        return unsafe ccurl_easy_set_long(easy, CURLOPT_FORBID_REUSE, 0) == CURLE_OK
    }

    /// Keeps the body up to the limit, because the part that fits may hold a whole token.
    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let remaining = configuration.maximumBodyBytes - body.count
        guard bytes.count <= remaining else {
            unsafe body.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(remaining)))
            abort = .bodyTooLarge
            return false
        }
        unsafe body.append(bytes)
        return true
    }

    /// Keeps a header line.
    ///
    /// A status line discards the lines before it, so that only the last response's headers remain.
    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        hasReceivedHeaders = true
        guard head.count + line.count <= configuration.maximumHeaderBytes else {
            abort = .headersTooLarge
            return false
        }
        // libcurl 7.88 reads freed memory when it joins such a line to the previous one. Servers must not send folded
        // lines since RFC 7230 of 2014.
        guard unsafe line.first != UInt8(ascii: " "), unsafe line.first != UInt8(ascii: "\t") else {
            abort = .foldedHeader
            return false
        }
        if unsafe line.first == UInt8(ascii: "H"), unsafe line.starts(with: "HTTP/".utf8) {
            head.removeAll()
            isHeadComplete = false
        }
        let isEmpty = unsafe line.count <= 2 && line.allSatisfy { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
        if isEmpty { isHeadComplete = true }
        unsafe head.append(line)
        return true
    }

    static let prerequest: curl_prereq_callback = { context, _, _, _, _ in
        guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
        let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        return transfer.mayIssue() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }

    /// libcurl ends the transfer unless this returns the number of bytes that it received; zero also ends it.
    static let bodyReceiver: curl_write_callback = { start, size, count, context in
        guard let start = unsafe start, let context = unsafe context else { return 0 }
        let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size * count)
        return unsafe transfer.receiveBody(bytes) ? size * count : 0
    }

    static let headerReceiver: curl_write_callback = { start, size, count, context in
        guard let start = unsafe start, let context = unsafe context else { return 0 }
        let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        let line = unsafe UnsafeRawBufferPointer(start: start, count: size * count)
        return unsafe transfer.receiveHeader(line) ? size * count : 0
    }
}
