private import Base
internal import CCurl

/// A libcurl easy handle: an ``HTTP1Connection`` or a ``TLSConnection``.
///
/// It is confined to the client's thread: libcurl calls back only from inside the calls that this thread makes.
@safe
class EasyHandle {
    let easy: UnsafeMutableRawPointer
    let configuration: HTTPClient.Configuration
    private let errorText: UnsafeMutablePointer<CChar>

    init(configuration: HTTPClient.Configuration) throws(HTTPError) {
        guard let easy = unsafe curl_easy_init() else {
            throw HTTPError(kind: .other, message: "libcurl has no memory for a request")
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

    /// Returns libcurl's message, short and printable: its detail might quote text that a server sent.
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
    func setConnectionOptions(for endpoint: Endpoint) throws(HTTPError) {
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PRIVATE, context))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText))
        try set(CURLOPT_PROTOCOLS_STR, endpoint.scheme)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try setAuthorities()
        try set(CURLOPT_NOSIGNAL, 1)
        try set(CURLOPT_TCP_NODELAY, 1)
        try set(CURLOPT_TCP_KEEPALIVE, 1)
        // A proxy from the environment cannot reach this machine's loopback. An empty name means no proxy.
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
    private func setAuthorities() throws(HTTPError) {
        var defaultFile: UnsafePointer<CChar>?
        try unsafe check(ccurl_easy_get_string(easy, CURLINFO_CAINFO, &defaultFile))
        let hasFile = unsafe configuration.caFile != nil || defaultFile != nil
        if let caFile = configuration.caFile { try set(CURLOPT_CAINFO, caFile) }
        guard hasFile else { return }
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_CAPATH, nil))
        // A change of the file takes effect within an hour.
        try set(CURLOPT_CA_CACHE_TIMEOUT, 3600)
    }

    func set(_ option: CURLoption, _ value: Int) throws(HTTPError) {
        try check(unsafe ccurl_easy_set_long(easy, option, value))
    }

    func set(_ option: CURLoption, _ value: String) throws(HTTPError) {
        try check(unsafe ccurl_easy_set_string(easy, option, value))
    }

    func check(_ result: CURLcode) throws(HTTPError) {
        guard result != CURLE_OK else { return }
        let message = unsafe String(cString: curl_easy_strerror(result))
        throw HTTPError(kind: .other, code: Int(result.rawValue), message: message)
    }
}

/// A TLS connection that libcurl makes, and that then carries bytes instead of libcurl's transfers.
///
/// Names, addresses, proxies, the handshake and the verification of the certificate are libcurl's work
/// (https://curl.se/libcurl/c/CURLOPT_CONNECT_ONLY.html). The handle stays in the multi handle, which owns the
/// connection, until the transport removes it.
@safe
final class TLSConnection: EasyHandle {
    /// The result of reading or writing, without waiting.
    enum Step {
        /// The number of bytes.
        case moved(Int)
        case wouldBlock
        /// The server closed the connection.
        case closed
        /// libcurl's code.
        case failed(UInt32)
    }

    /// `true` if the handshake agreed on HTTP/2.
    ///
    /// `false` ends the connection.
    private(set) var isHTTP2: Bool?
    /// The socket of the established connection.
    private(set) var socket: Int32 = -1

    /// Prepares a connection to the host and port of an endpoint.
    init(to endpoint: Endpoint, configuration: HTTPClient.Configuration) throws(HTTPError) {
        try super.init(configuration: configuration)
        try setConnectionOptions(for: endpoint)
        try set(CURLOPT_URL, "https://\(endpoint.authority)/")
        try set(CURLOPT_CONNECT_ONLY, 1)
        // HTTP/1.1, so that libcurl does not treat the connection as one that its own transfers can share.
        try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        try set(CURLOPT_SSL_ENABLE_ALPN, 0)
        try check(unsafe ccurl_easy_offer_http2(easy))
        try check(unsafe ccurl_easy_set_prerequest(easy, Self.handshakeEnded))
        try check(unsafe ccurl_easy_set_pointer(easy, CURLOPT_PREREQDATA, context))
        let limit = configuration.connectDeadline.wholeMilliseconds.clamped(to: 1...Int64(Int32.max))
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(limit))
    }

    /// Finds the socket of the connection that is now established.
    func establish() throws(HTTPError) {
        try check(unsafe ccurl_easy_get_socket(easy, &socket))
        guard socket >= 0 else { throw HTTPError(kind: .connect, message: "libcurl closed the new connection") }
    }

    func send(_ bytes: RawSpan) -> Step {
        var count = 0
        let result = unsafe bytes.withUnsafeBytes { bytes in
            unsafe curl_easy_send(easy, bytes.baseAddress, bytes.count, &count)
        }
        return step(result, count: count)
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Step {
        var count = 0
        let result = unsafe curl_easy_recv(easy, buffer.baseAddress, buffer.count, &count)
        return step(result, count: count)
    }

    private func step(_ result: CURLcode, count: Int) -> Step {
        switch result {
        case CURLE_OK: count > 0 ? .moved(count) : .closed
        case CURLE_AGAIN: .wouldBlock
        default: .failed(result.rawValue)
        }
    }

    private static let handshakeEnded: curl_prereq_callback = { context, _, _, _, _ in
        guard let context = unsafe context else { return CURL_PREREQFUNC_ABORT }
        let connection = unsafe Unmanaged<TLSConnection>.fromOpaque(context).takeUnretainedValue()
        let isHTTP2 = unsafe ccurl_connection_is_http2(connection.easy) == 1
        connection.isHTTP2 = isHTTP2
        guard isHTTP2 else { return CURL_PREREQFUNC_ABORT }
        // Later, libcurl no longer says which connection belongs to the handle.
        let isBuffered = unsafe ccurl_connection_buffer_input(connection.easy) == CURLE_OK
        return isBuffered ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }
}
