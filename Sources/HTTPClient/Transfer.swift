private import CCurl
internal import Clocks
private import Secrets

/// One libcurl easy handle and what a request needs while it runs; used again for the next one.
///
/// It lives on the owner thread: libcurl calls back only from inside the calls that this thread makes.
@safe
final class Transfer {
    /// Why a callback ended the transfer, which libcurl cannot tell.
    enum Abort {
        case late
        case repeated
        case bodyTooLarge
        case headersTooLarge
        case foldedHeader
        case usedHandle
    }

    let easy: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var headerList: UnsafeMutablePointer<curl_slist>?
    /// The lasting pattern that the handle's options are those of.
    private var prepared: RequestPattern?
    private var connectMilliseconds = 0
    private let configuration: HTTPClient.Configuration
    private let time: any TimeSource

    private(set) var ticket: Ticket?
    /// The time at which libcurl was given the request.
    private var startedAt = BootInstant(milliseconds: 0)
    private var head = WipedBytes()
    private var body = WipedBytes()
    /// Whether libcurl was let send the request.
    private var isIssued = false
    /// `true` if libcurl may use the connection again after this request.
    private var mayKeepConnection = false
    /// Whether the empty line has come that ends the headers.
    private var isHeadComplete = false
    private var abort: Abort?
    /// `true` once the handle has received headers, for this request or an earlier one.
    private var hasReceivedHeaders = false
    /// `true` if the connection of the present or last request speaks HTTP/2.
    private var isHTTP2 = false

    init(configuration: HTTPClient.Configuration, time: any TimeSource) throws(HTTPFailure) {
        guard let easy = unsafe curl_easy_init() else {
            throw HTTPFailure(kind: .other, message: "libcurl has no memory for a request")
        }
        unsafe self.easy = unsafe easy
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        self.configuration = configuration
        self.time = time
    }

    deinit {
        unsafe curl_easy_cleanup(easy)
        unsafe curl_slist_free_all(headerList)
        unsafe errorText.deallocate()
    }

    /// The transfer behind an easy handle that libcurl speaks of.
    static func of(easy: UnsafeMutableRawPointer) -> Transfer? {
        var context: UnsafeMutableRawPointer?
        guard unsafe ccurl_easy_get_private(easy, &context) == CURLE_OK, let context = unsafe context else {
            return nil
        }
        return unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }

    /// Makes the handle ready for a request.
    func prepare(for ticket: Ticket, at now: BootInstant) throws(HTTPFailure) {
        self.ticket = ticket
        startedAt = now
        let pattern = ticket.request.pattern
        if prepared !== pattern {
            forgetOptions()
            try setOptions(of: pattern)
            if let signature = ticket.request.signature { try sign(by: signature) }
            try setHeaders(of: pattern, isSigned: ticket.request.signature != nil)
            if pattern.isLasting { prepared = pattern }
        }
        try setDeadline(remaining: ticket.deadline - now)
        if mayKeepConnection {
            try set(CURLOPT_FORBID_REUSE, 1)
            mayKeepConnection = false
        }
        if pattern.method == .post { try setBody(ticket.request.body) }
    }

    /// Forgets the request and its answer; libcurl's connections stay with the multi handle.
    ///
    /// The options of a lasting pattern stay for the next request of it, the body, which holds a token, does not.
    func reset() {
        if !keepsOptions { forgetOptions() }
        unsafe errorText[0] = 0
        ticket = nil
        head = WipedBytes()
        body = WipedBytes()
        isIssued = false
        isHeadComplete = false
        abort = nil
    }

    /// Whether the handle is prepared for a lasting pattern and has let go of the body.
    private var keepsOptions: Bool {
        guard let prepared else { return false }
        guard prepared.method == .post else { return true }
        return unsafe ccurl_easy_set_pointer(easy, CURLOPT_POSTFIELDS, nil) == CURLE_OK
    }

    private func forgetOptions() {
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
    /// What became of the request, by libcurl's word; takes the answer out.
    func result(code: UInt32) -> Result<HTTPResponse, HTTPFailure> {
        guard CURLcode(code) == CURLE_OK else { return .failure(failure(code: code)) }
        // libcurl 7.88 takes headers that a lost connection cut off for an answer without a body.
        guard let answer = takeAnswer() else {
            return .failure(failure(.receiveFailed, "the answer's headers were cut off"))
        }
        return .success(answer)
    }

    /// A failure that the loop decided on; takes out what has arrived of the answer.
    func failure(_ kind: HTTPFailure.Kind, _ message: String) -> HTTPFailure {
        HTTPFailure(
            kind: kind,
            outcomeUnknown: isIssued,
            message: message,
            elapsed: elapsed,
            partialAnswer: takeAnswer()
        )
    }

    /// The failure of a request whose deadline has passed.
    ///
    /// A request that was not sent blames the server only if connecting took longer than the wait in this process.
    func expiry() -> HTTPFailure {
        guard !isIssued, let ticket else { return failure(.timeout, "no answer within the deadline") }
        let connecting = time.sinceBoot - startedAt
        guard connecting < startedAt - ticket.submitted else {
            return failure(.timeout, "no connection within the deadline")
        }
        return failure(.expired, "the deadline passed before the request was sent")
    }

    /// The final answer with what has arrived of its body; `nil` before its headers are complete.
    private func takeAnswer() -> HTTPResponse? {
        let status = long(CURLINFO_RESPONSE_CODE)
        guard isHeadComplete, status >= 200 else { return nil }
        let version: HTTPResponse.Version =
            switch long(CURLINFO_HTTP_VERSION) {
            case Int(CURL_HTTP_VERSION_1_0), Int(CURL_HTTP_VERSION_1_1): .http1
            case Int(CURL_HTTP_VERSION_2_0): .http2
            default: .other
            }
        return HTTPResponse(
            status: status,
            body: HTTPBody(exchange(&body)),
            httpVersion: version,
            newConnection: long(CURLINFO_NUM_CONNECTS) > 0,
            elapsed: elapsed,
            head: HTTPBody(exchange(&head))
        )
    }

    /// Connections opened, body bytes sent and body bytes received on the request's behalf.
    var cost: (connections: Int, sent: Int, received: Int) {
        (
            connections: long(CURLINFO_NUM_CONNECTS),
            sent: size(CURLINFO_SIZE_UPLOAD_T),
            received: size(CURLINFO_SIZE_DOWNLOAD_T)
        )
    }

    private var elapsed: Duration {
        guard let ticket else { return .zero }
        return time.sinceBoot - ticket.submitted
    }

    private func failure(code: UInt32) -> HTTPFailure {
        switch abort {
        case .late:
            return failure(.expired, "the deadline passed before the request was sent")
        case .repeated:
            return failure(.receiveFailed, "the connection was lost without an answer; the request is not repeated")
        case .bodyTooLarge:
            return failure(.bodyTooLarge, "the answer's body is longer than \(configuration.maximumBodyBytes) bytes")
        case .headersTooLarge:
            return failure(
                .headersTooLarge,
                "the answer's headers are longer than \(configuration.maximumHeaderBytes) bytes"
            )
        case .foldedHeader:
            return failure(.receiveFailed, "a header of the answer goes on in a second line")
        case .usedHandle:
            return failure(.other, "the request was kept here for a handle of its own")
        case nil:
            return HTTPFailure(
                kind: HTTPFailure.Kind(curlCode: code, requestIssued: isIssued),
                outcomeUnknown: isIssued,
                code: Int(code),
                message: message(code: CURLcode(code)),
                elapsed: elapsed,
                partialAnswer: takeAnswer()
            )
        }
    }

    /// libcurl's words, short and printable: its detail may quote what a server sent.
    private func message(code: CURLcode) -> String {
        let general = unsafe String(cString: curl_easy_strerror(code))
        let detail = unsafe String(cString: errorText)
        guard !detail.isEmpty else { return general }
        let printable = detail.unicodeScalars.prefix(200).map { $0.value >= 0x20 && $0.value < 0x7F ? $0 : "?" }
        return "\(general): \(String(String.UnicodeScalarView(printable)))"
    }

    private func exchange(_ bytes: inout WipedBytes) -> WipedBytes {
        var taken = WipedBytes()
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

// MARK: - What libcurl calls back

extension Transfer {
    /// Decides, with the connection made and nothing sent, whether the request may go out.
    ///
    /// libcurl sends a request again by itself when a connection that it reused is lost without an answer. A refresh
    /// token may be spent by then, so only a GET is let out twice. And what was held up past its deadline (a process
    /// that was stopped, a machine that slept) is not sent at all.
    private func mayIssue() -> Bool {
        guard let ticket else { return false }
        guard !isIssued || ticket.request.pattern.method == .get else {
            abort = .repeated
            return false
        }
        guard time.sinceBoot < ticket.deadline else {
            abort = .late
            return false
        }
        isHTTP2 = unsafe ccurl_connection_is_http2(easy) == 1
        guard isHTTP2 || !hasReceivedHeaders else {
            abort = .usedHandle
            return false
        }
        guard allowReuseOverHTTP2() else { return false }
        isIssued = true
        return true
    }

    /// `true` if the handle may serve another request.
    ///
    /// libcurl 7.88 keeps a pointer to the last header of the answer before, which it has freed by then, and joins a first header
    /// line that begins with a blank to it (fixed in 8.1: https://github.com/curl/curl/pull/11103). No HTTP/2 header can begin so.
    /// Over HTTP/1.1 each answer gets a handle that has received no header.
    var isReusable: Bool { isHTTP2 || !hasReceivedHeaders }

    /// `true` if the request was kept here, because its connection speaks HTTP/1.1 and the handle has received headers before.
    var needsNewHandle: Bool { abort == .usedHandle && !isIssued }

    /// Lets libcurl keep the connection if it speaks HTTP/2; every other connection carries one request.
    ///
    /// An HTTP/1.1 answer does not say which request it belongs to. What a server sends unasked, even after the next request
    /// is written, would become that request's answer: one user would get another user's token.
    private func allowReuseOverHTTP2() -> Bool {
        guard isHTTP2 else { return true }
        mayKeepConnection = true
        return unsafe ccurl_easy_set_long(easy, CURLOPT_FORBID_REUSE, 0) == CURLE_OK
    }

    /// Keeps the body up to the limit: what fits may hold a whole token.
    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let room = configuration.maximumBodyBytes - body.count
        guard bytes.count <= room else {
            unsafe body.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(room)))
            abort = .bodyTooLarge
            return false
        }
        unsafe body.append(bytes)
        return true
    }

    /// Keeps a header line; a status line begins anew, so that only the last answer's headers stand.
    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        hasReceivedHeaders = true
        guard head.count + line.count <= configuration.maximumHeaderBytes else {
            abort = .headersTooLarge
            return false
        }
        // libcurl 7.88 reads freed memory when it joins such a line to the one before; no server has been allowed to
        // send one since RFC 7230 of 2014.
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

    private static let prerequest: curl_prereq_callback = { context, _, _, _, _ in
        guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
        let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        return transfer.mayIssue() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }

    /// Any other number than that of the bytes given ends the transfer, zero included.
    private static let bodyReceiver: curl_write_callback = { start, size, count, context in
        guard let start = unsafe start, let context = unsafe context else { return 0 }
        let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        let bytes = unsafe UnsafeRawBufferPointer(start: start, count: size * count)
        return unsafe transfer.receiveBody(bytes) ? size * count : 0
    }

    private static let headerReceiver: curl_write_callback = { start, size, count, context in
        guard let start = unsafe start, let context = unsafe context else { return 0 }
        let transfer = unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        let line = unsafe UnsafeRawBufferPointer(start: start, count: size * count)
        return unsafe transfer.receiveHeader(line) ? size * count : 0
    }
}

// MARK: - Options

extension Transfer {
    private func setOptions(of pattern: RequestPattern) throws(HTTPFailure) {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PRIVATE, context))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText))
        try check(unsafe ccurl_easy_set_receiver(easy, CURLOPT_WRITEFUNCTION, Self.bodyReceiver))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_WRITEDATA, context))
        try check(unsafe ccurl_easy_set_receiver(easy, CURLOPT_HEADERFUNCTION, Self.headerReceiver))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_HEADERDATA, context))
        try check(unsafe ccurl_easy_set_prerequest(easy, Self.prerequest))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PREREQDATA, context))
        try setConnectionOptions(for: pattern.endpoint)
        switch pattern.method {
        case .get: try set(CURLOPT_HTTPGET, 1)
        case .post: try set(CURLOPT_POST, 1)
        }
        try set(CURLOPT_USERAGENT, configuration.userAgent)
    }

    private func setConnectionOptions(for endpoint: Endpoint) throws(HTTPFailure) {
        let isEncrypted = endpoint.scheme == .https
        let offersHTTP2 = isEncrypted && configuration.http2
        try set(CURLOPT_URL, endpoint.url)
        try set(CURLOPT_PROTOCOLS_STR, endpoint.scheme.rawValue)
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_HTTP_VERSION, Int(offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
        // Waiting to learn whether a connection can be shared is of use only where it may turn out to be HTTP/2.
        try set(CURLOPT_PIPEWAIT, offersHTTP2 ? 1 : 0)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try setAuthorities()
        try set(CURLOPT_NOSIGNAL, 1)
        // CURLOPT_BUFFERSIZE stays at 16 KB: libcurl 7.88 refuses another size once a handle has its buffer, and may keep the
        // buffer over curl_easy_reset.
        try set(CURLOPT_FORBID_REUSE, 1)
        try set(CURLOPT_TCP_NODELAY, 1)
        try set(CURLOPT_TCP_KEEPALIVE, 1)
        // A proxy of the environment's cannot reach this machine's own loopback; an empty name means none.
        if endpoint.isLoopback { try set(CURLOPT_PROXY, "") }
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // Otherwise ending a transfer that is still looking up its host would wait for the look-up, and every other
        // transfer with it (https://curl.se/libcurl/c/CURLOPT_QUICK_EXIT.html).
        try set(CURLOPT_QUICK_EXIT, 1)
    }

    /// Sets the certificates to trust, as one file.
    ///
    /// libcurl keeps the certificates it has read only if all of them come from a file. With a directory beside it, as Debian's
    /// libcurl has by default, each connection would read the whole file again: 26 ms for the 140 authorities of the system.
    private func setAuthorities() throws(HTTPFailure) {
        var usualFile: UnsafePointer<CChar>?
        try unsafe check(ccurl_easy_get_string(easy, CURLINFO_CAINFO, &usualFile))
        let hasFile = unsafe configuration.caFile != nil || usualFile != nil
        if let caFile = configuration.caFile { try set(CURLOPT_CAINFO, caFile) }
        guard hasFile else { return }
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_CAPATH, nil))
        // So that a change of the file takes effect within an hour.
        try set(CURLOPT_CA_CACHE_TIMEOUT, 3600)
    }

    private func setDeadline(remaining: Duration) throws(HTTPFailure) {
        // The total is the loop's to keep: libcurl would end a transfer before it looks whether its answer is there.
        // Zero would mean its own deadline to libcurl.
        let total = remaining.wholeMilliseconds.clamped(to: 1...Int64(Int32.max))
        let connect = configuration.connectDeadline.wholeMilliseconds.clamped(to: 1...total)
        guard connectMilliseconds != Int(connect) else { return }
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(connect))
        connectMilliseconds = Int(connect)
    }

    private func setBody(_ body: HTTPBody?) throws(HTTPFailure) {
        try set(CURLOPT_POSTFIELDSIZE, body?.count ?? 0)
        if let body, body.count > 0 {
            // libcurl reads from the body's own memory, which the ticket keeps until the transfer is reset.
            try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_POSTFIELDS, body.address))
        } else {
            try set(CURLOPT_COPYPOSTFIELDS, "")
        }
    }

    private func setHeaders(of pattern: RequestPattern, isSigned: Bool) throws(HTTPFailure) {
        for (name, value) in pattern.headers {
            // A name and colon alone would tell libcurl to leave the header out.
            try unsafe appendHeader(value.allSatisfy(\.isWhitespace) ? "\(name);" : "\(name): \(value)")
        }
        // Without this libcurl may ask for leave before it sends a body, which costs a round trip. libcurl 7.88 signs the
        // line although it does not send it, so that no server could agree with the signature.
        if !isSigned { try unsafe appendHeader("Expect:") }
        // Over HTTP/1.1 only: libcurl leaves it out of HTTP/2. A server that closes first keeps the port in TIME_WAIT, of
        // which this side would have too few. A proxy may drop the line, so that it must not be signed.
        if !isSigned { try unsafe appendHeader("Connection: close") }
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_HTTPHEADER, headerList))
    }

    private func appendHeader(_ line: UnsafePointer<CChar>) throws(HTTPFailure) {
        guard let longer = unsafe curl_slist_append(headerList, line) else {
            throw HTTPFailure(kind: .other, message: "libcurl has no memory for a header")
        }
        unsafe headerList = unsafe longer
    }

    /// Has libcurl sign the request: the body, and every header that it is given here.
    ///
    /// libcurl and its header list keep copies until the transfer is reset, which it frees without wiping. A signed request
    /// is never of a lasting pattern.
    /// https://curl.se/libcurl/c/CURLOPT_AWS_SIGV4.html
    private func sign(by signature: AWSSignature) throws(HTTPFailure) {
        try set(CURLOPT_AWS_SIGV4, "aws:amz:\(signature.region):\(signature.service)")
        let credentials = signature.credentials
        try unsafe Self.withText("", credentials.keyID) { (text) throws(HTTPFailure) in
            try unsafe check(ccurl_easy_set_string(easy, CURLOPT_USERNAME, text))
        }
        try unsafe Self.withText("", credentials.secretKey) { (text) throws(HTTPFailure) in
            try unsafe check(ccurl_easy_set_string(easy, CURLOPT_PASSWORD, text))
        }
        guard let sessionToken = credentials.sessionToken else { return }
        try unsafe Self.withText("X-Amz-Security-Token: ", sessionToken) { (line) throws(HTTPFailure) in
            try unsafe appendHeader(line)
        }
    }

    /// Lends some words and a secret after them, as C ends a string.
    private static func withText(
        _ words: String,
        _ secret: Secret,
        _ body: (UnsafePointer<CChar>) throws(HTTPFailure) -> Void
    ) throws(HTTPFailure) {
        var text = WipedBytes(capacity: words.utf8.count + secret.count + 1)
        text.append(Array(words.utf8))
        secret.withBytes { text.append($0) }
        text.append(0)
        try text.withBytes { (span) throws(HTTPFailure) in
            try unsafe span.withUnsafeBytes { (bytes) throws(HTTPFailure) in
                guard let start = bytes.baseAddress else { return }
                try unsafe body(start.assumingMemoryBound(to: CChar.self))
            }
        }
    }

    private func set(_ option: CURLoption, _ value: Int) throws(HTTPFailure) {
        try check(unsafe ccurl_easy_set_long(easy, option, value))
    }

    private func set(_ option: CURLoption, _ value: String) throws(HTTPFailure) {
        try check(unsafe ccurl_easy_set_string(easy, option, value))
    }

    private func check(_ result: CURLcode) throws(HTTPFailure) {
        guard result != CURLE_OK else { return }
        let message = unsafe String(cString: curl_easy_strerror(result))
        throw HTTPFailure(kind: .other, code: Int(result.rawValue), message: message)
    }
}
