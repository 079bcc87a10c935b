private import Base
internal import CCurl

/// A TLS connection that libcurl makes, and that then carries bytes instead of libcurl's transfers.
///
/// Names, addresses, proxies, the handshake and the verification of the certificate are libcurl's work
/// (https://curl.se/libcurl/c/CURLOPT_CONNECT_ONLY.html). The handle stays in the multi handle, which owns the
/// connection, until the transport removes it.
@safe
final class TLSConnection: EasyHandle {
    /// The result of reading or writing, without waiting.
    enum Step {
        /// So many bytes were moved.
        case moved(Int)
        case wouldBlock
        /// The server closed the connection.
        case closed
        /// libcurl's code.
        case failed(UInt32)
    }

    /// `true` if the handshake agreed on HTTP/2. `false` ends the connection.
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
