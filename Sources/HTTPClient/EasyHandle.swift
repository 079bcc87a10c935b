private import Base
internal import CCurl
private import Crypto

/// A libcurl easy handle: a transfer, or a connection for bytes.
///
/// It is confined to the client's thread: libcurl calls back only from inside the calls that this thread makes.
@safe
class EasyHandle {
    let easy: UnsafeMutableRawPointer
    let configuration: HTTPClient.Configuration
    private let errorText: UnsafeMutablePointer<CChar>

    init(configuration: HTTPClient.Configuration) throws(HTTPFailure) {
        guard let easy = unsafe curl_easy_init() else {
            throw HTTPFailure(kind: .other, message: "libcurl has no memory for a request")
        }
        unsafe self.easy = unsafe easy
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        self.configuration = configuration
    }

    deinit {
        unsafe curl_easy_cleanup(easy)
        unsafe errorText.deallocate()
    }

    /// Returns the object of an easy handle that libcurl reports.
    static func of(easy: UnsafeMutableRawPointer) -> EasyHandle? {
        var context: UnsafeMutableRawPointer?
        guard unsafe ccurl_easy_get_private(easy, &context) == CURLE_OK, let context = unsafe context else {
            return nil
        }
        return unsafe Unmanaged<EasyHandle>.fromOpaque(context).takeUnretainedValue()
    }

    /// The argument of libcurl's callbacks.
    var context: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

    func clearError() {
        unsafe errorText[0] = 0
    }

    /// Returns libcurl's message, short and printable: its detail may quote text that a server sent.
    func message(code: UInt32) -> String {
        let general = unsafe String(cString: curl_easy_strerror(CURLcode(code)))
        let detail = unsafe String(cString: errorText)
        guard !detail.isEmpty else { return general }
        let printable = detail.unicodeScalars.prefix(200).map { $0.value >= 0x20 && $0.value < 0x7F ? $0 : "?" }
        return "\(general): \(String(String.UnicodeScalarView(printable)))"
    }
}

// MARK: - Options

extension EasyHandle {
    /// Sets the options that all handles have: how a connection to an endpoint is made and verified.
    func setConnectionOptions(for endpoint: Endpoint) throws(HTTPFailure) {
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PRIVATE, context))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText))
        try set(CURLOPT_PROTOCOLS_STR, endpoint.scheme.rawValue)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try setAuthorities()
        try set(CURLOPT_NOSIGNAL, 1)
        try set(CURLOPT_TCP_NODELAY, 1)
        try set(CURLOPT_TCP_KEEPALIVE, 1)
        // A proxy from the environment cannot reach this machine's loopback; an empty name means no proxy.
        if endpoint.isLoopback { try set(CURLOPT_PROXY, "") }
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // Without this option, ending a transfer that is still resolving its host would wait for the resolver and block
        // every other transfer (https://curl.se/libcurl/c/CURLOPT_QUICK_EXIT.html).
        try set(CURLOPT_QUICK_EXIT, 1)
        try set(CURLOPT_USERAGENT, configuration.userAgent)
    }

    /// Sets the certificates to trust, from one file.
    ///
    /// libcurl caches certificates only if all of them come from a file. With an additional directory, as Debian's
    /// libcurl has by default, each connection would read the whole file again: 26 ms for the system's 140 authorities.
    private func setAuthorities() throws(HTTPFailure) {
        var defaultFile: UnsafePointer<CChar>?
        try unsafe check(ccurl_easy_get_string(easy, CURLINFO_CAINFO, &defaultFile))
        let hasFile = unsafe configuration.caFile != nil || defaultFile != nil
        if let caFile = configuration.caFile { try set(CURLOPT_CAINFO, caFile) }
        guard hasFile else { return }
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_CAPATH, nil))
        // A change of the file takes effect within an hour.
        try set(CURLOPT_CA_CACHE_TIMEOUT, 3600)
    }

    func set(_ option: CURLoption, _ value: Int) throws(HTTPFailure) {
        try check(unsafe ccurl_easy_set_long(easy, option, value))
    }

    func set(_ option: CURLoption, _ value: String) throws(HTTPFailure) {
        try check(unsafe ccurl_easy_set_string(easy, option, value))
    }

    func check(_ result: CURLcode) throws(HTTPFailure) {
        guard result != CURLE_OK else { return }
        let message = unsafe String(cString: curl_easy_strerror(result))
        throw HTTPFailure(kind: .other, code: Int(result.rawValue), message: message)
    }
}

/// The libcurl options that prepare a handle for a request.
extension Transfer {
    func setOptions(of pattern: RequestPattern) throws(HTTPFailure) {
        try check(unsafe ccurl_easy_set_receiver(easy, CURLOPT_WRITEFUNCTION, Self.bodyReceiver))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_WRITEDATA, context))
        try check(unsafe ccurl_easy_set_receiver(easy, CURLOPT_HEADERFUNCTION, Self.headerReceiver))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_HEADERDATA, context))
        try check(unsafe ccurl_easy_set_prerequest(easy, Self.prerequest))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PREREQDATA, context))
        try setConnectionOptions(for: pattern.endpoint)
        let offersHTTP2 = pattern.endpoint.scheme == .https && configuration.http2
        try set(CURLOPT_URL, pattern.endpoint.url)
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_HTTP_VERSION, Int(offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1))
        // Waiting for a connection to become shareable only helps if it may turn out to be HTTP/2.
        try set(CURLOPT_PIPEWAIT, offersHTTP2 ? 1 : 0)
        // CURLOPT_BUFFERSIZE stays at 16 KB: libcurl 7.88 refuses another size once a handle has its buffer, and may
        // keep the buffer over curl_easy_reset.
        try set(CURLOPT_FORBID_REUSE, 1)
        switch pattern.method {
        case .get: try set(CURLOPT_HTTPGET, 1)
        case .post: try set(CURLOPT_POST, 1)
        }
    }

    func setDeadline(remaining: Duration) throws(HTTPFailure) {
        // The loop enforces the total deadline: libcurl would end a transfer before checking whether its response has
        // arrived. libcurl reads zero as its own default, so the value is at least one.
        let total = remaining.wholeMilliseconds.clamped(to: 1...Int64(Int32.max))
        let connect = configuration.connectDeadline.wholeMilliseconds.clamped(to: 1...total)
        guard connectMilliseconds != Int(connect) else { return }
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(connect))
        connectMilliseconds = Int(connect)
    }

    func setBody(_ body: HTTPBody?) throws(HTTPFailure) {
        try set(CURLOPT_POSTFIELDSIZE, body?.count ?? 0)
        if let body, body.count > 0 {
            // libcurl reads from the body's own memory, which the submitted request keeps until the transfer is reset.
            try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_POSTFIELDS, body.address))
        } else {
            try set(CURLOPT_COPYPOSTFIELDS, "")
        }
    }

    func setHeaders(of pattern: RequestPattern) throws(HTTPFailure) {
        for (name, value) in pattern.headers {
            // With a name and colon alone, libcurl would leave the header out.
            try unsafe appendHeader(value.allSatisfy(\.isWhitespace) ? "\(name);" : "\(name): \(value)")
        }
        // Without this line libcurl may ask for permission before it sends a body, which costs a round trip.
        try unsafe appendHeader("Expect:")
        // Only takes effect over HTTP/1.1: libcurl leaves it out of HTTP/2. The server then closes the connection first
        // and keeps the port in TIME_WAIT; this side would run out of ports.
        try unsafe appendHeader("Connection: close")
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_HTTPHEADER, headerList))
    }

    private func appendHeader(_ line: UnsafePointer<CChar>) throws(HTTPFailure) {
        guard let longer = unsafe curl_slist_append(headerList, line) else {
            throw HTTPFailure(kind: .other, message: "libcurl has no memory for a header")
        }
        unsafe headerList = unsafe longer
    }
}
