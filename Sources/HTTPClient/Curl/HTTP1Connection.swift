internal import Base
internal import CCurl

/// A connection on which libcurl sends one request over HTTP/1.1.
///
/// It carries no second one: an HTTP/1.1 response does not say which request it belongs to. If a server sends an
/// unsolicited response, even after the next request is written, it would be taken for that request's response: one
/// user would get another user's token. A check for unread bytes misses those that arrive after the next request is
/// written. Look-ups count too: they decide who signs in. The price over TLS is 1.2 ms of processor time instead of
/// 0.09, but Google speaks HTTP/2, whose streams name their requests. The handle is not reused either: libcurl 7.88
/// keeps a pointer to the last header of the previous response after freeing it, and appends a first header line that
/// begins with a blank to it (fixed in 8.1: https://github.com/curl/curl/pull/11103).
@safe
final class HTTP1Connection: EasyHandle {
    let transfer: HTTPTransfer
    private let time: any TimeSource
    private var headerList: UnsafeMutablePointer<curl_slist>?

    /// Prepares a connection for a request.
    init(
        for transfer: HTTPTransfer,
        configuration: HTTPClient.Configuration,
        time: any TimeSource,
        at now: BootInstant
    ) throws(HTTPError) {
        self.transfer = transfer
        self.time = time
        try super.init(configuration: configuration)
        let request = transfer.request
        try setReceivers()
        try setConnectionOptions(for: request.pattern.endpoint)
        try set(CURLOPT_URL, request.pattern.endpoint.url)
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        try set(CURLOPT_FORBID_REUSE, 1)
        switch request.pattern.method {
        case .get: try set(CURLOPT_HTTPGET, 1)
        case .post:
            try set(CURLOPT_POST, 1)
            try setBody(request.body)
        }
        try setHeaders()
        // The loop enforces the total deadline: libcurl would end a transfer before checking whether its response has
        // arrived. libcurl reads zero as its own default, so the value is at least one.
        let total = (transfer.deadline - now).wholeMilliseconds.clamped(to: 1...Int64(Int32.max))
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(configuration.connectDeadline.wholeMilliseconds.clamped(to: 1...total)))
    }

    deinit {
        unsafe curl_slist_free_all(headerList)
    }

    /// Returns the result of the request for libcurl's code.
    func result(code: UInt32) -> Result<HTTPResponse, HTTPError> {
        if let failure = transfer.abortFailure { return .failure(failure) }
        guard CURLcode(code) == CURLE_OK else {
            let kind = HTTPError.Kind(curlCode: code, requestIssued: transfer.isIssued)
            return .failure(transfer.failure(kind, code: Int(code), message(code: code)))
        }
        if let response = transfer.takeResponse() { return .success(response) }
        // libcurl 7.88 treats headers that were cut off by a lost connection as a response without a body.
        let reason = "the response's headers were cut off, or its status is not a number of three digits"
        return .failure(transfer.failure(.receiveFailed, reason))
    }
}

// MARK: - Options

extension HTTP1Connection {
    private func setReceivers() throws(HTTPError) {
        try check(unsafe ccurl_easy_set_receiver(easy, CURLOPT_WRITEFUNCTION, Self.bodyReceiver))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_WRITEDATA, context))
        try check(unsafe ccurl_easy_set_receiver(easy, CURLOPT_HEADERFUNCTION, Self.headerReceiver))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_HEADERDATA, context))
        try check(unsafe ccurl_easy_set_prerequest(easy, Self.prerequest))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PREREQDATA, context))
    }

    private func setBody(_ body: HTTPBody?) throws(HTTPError) {
        try set(CURLOPT_POSTFIELDSIZE, body?.count ?? 0)
        if let body, body.count > 0 {
            // libcurl reads from the body's own memory, which the transfer keeps.
            try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_POSTFIELDS, body.address))
        } else {
            try set(CURLOPT_COPYPOSTFIELDS, "")
        }
    }

    private func setHeaders() throws(HTTPError) {
        for (name, value) in transfer.request.pattern.headers {
            // With a name and colon alone, libcurl would leave the header out.
            try unsafe appendHeader(value.allSatisfy(\.isWhitespace) ? "\(name);" : "\(name): \(value)")
        }
        // Without this line libcurl might ask for permission before it sends a body, which costs a round trip.
        try unsafe appendHeader("Expect:")
        // The server then closes the connection first and keeps the port in TIME_WAIT. This side would run out of
        // ports.
        try unsafe appendHeader("Connection: close")
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_HTTPHEADER, headerList))
    }

    private func appendHeader(_ line: UnsafePointer<CChar>) throws(HTTPError) {
        guard let longer = unsafe curl_slist_append(headerList, line) else {
            throw HTTPError(kind: .other, message: "libcurl has no memory for a header")
        }
        unsafe headerList = unsafe longer
    }
}

// MARK: - Callbacks from libcurl

extension HTTP1Connection {
    /// Decides, once the connection is made and nothing is sent, whether the request can be sent.
    ///
    /// libcurl sends a request again on its own when a reused connection is lost without a response. A refresh token
    /// might be spent by then. A request that was delayed past its deadline (by a stopped process or a sleeping
    /// machine) is not sent at all.
    private func mayIssue() -> Bool {
        transfer.opensConnection = true
        guard !transfer.isIssued else {
            let message = "the connection was lost without a response; the request is not repeated"
            transfer.abort(.receiveFailed, message)
            return false
        }
        guard time.sinceBoot < transfer.deadline else {
            transfer.abort(.expired, "the deadline passed before the request was sent")
            return false
        }
        transfer.isIssued = true
        return true
    }

    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        // libcurl 7.88 reads freed memory when it joins such a line to the previous one. Servers must not send folded
        // lines since RFC 7230 of 2014.
        guard unsafe line.first != UInt8(ascii: " "), unsafe line.first != UInt8(ascii: "\t") else {
            transfer.abort(.receiveFailed, "a header of the response continues on a second line")
            return false
        }
        guard unsafe transfer.receiveLine(line) else { return false }
        let isEmpty = unsafe line.count <= 2 && line.allSatisfy { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
        if isEmpty, !transfer.isHeadComplete { transfer.endHead(status: long(CURLINFO_RESPONSE_CODE)) }
        return true
    }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        guard unsafe ccurl_easy_get_long(easy, info, &value) == CURLE_OK else { return 0 }
        return value
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> HTTP1Connection? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<HTTP1Connection>.fromOpaque(context).takeUnretainedValue()
    }

    private static let prerequest: curl_prereq_callback = { context, _, _, _, _ in
        unsafe of(context)?.mayIssue() == true ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }

    /// libcurl ends the transfer unless this returns the number of bytes that it received. Zero also ends it.
    private static let bodyReceiver: curl_write_callback = { start, size, count, context in
        guard let start = unsafe start, let connection = unsafe of(context) else { return 0 }
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size * count)
        return unsafe connection.transfer.receiveBody(bytes) ? size * count : 0
    }

    private static let headerReceiver: curl_write_callback = { start, size, count, context in
        guard let start = unsafe start, let connection = unsafe of(context) else { return 0 }
        let line = unsafe UnsafeRawBufferPointer(start: start, count: size * count)
        return unsafe connection.receiveHeader(line) ? size * count : 0
    }
}
