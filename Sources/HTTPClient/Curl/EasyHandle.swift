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
