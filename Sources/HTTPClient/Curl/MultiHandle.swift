internal import CCurl
private import Crypto

/// libcurl's multi handle: the transfers in flight and the connections that they share.
///
/// `@unchecked Sendable` holds because other threads only call ``wakeUp()``, which libcurl allows from any thread
/// (https://curl.se/libcurl/c/curl_multi_wakeup.html). Only the client's thread calls the rest. The handle is freed
/// when neither can call it any more.
@safe
final class MultiHandle: @unchecked Sendable {
    private let multi: UnsafeMutableRawPointer
    /// The TLS sessions of all transfers, so that a new connection can resume an earlier session.
    private let sessions: UnsafeMutableRawPointer

    init(_ configuration: HTTPClient.Configuration) throws(HTTPError) {
        guard Self.globalResult == CURLE_OK, let multi = unsafe curl_multi_init(),
            let sessions = unsafe curl_share_init()
        else {
            throw HTTPError(
                kind: .other,
                message: "libcurl cannot be started: there is no memory or no file descriptor left. Try again; if it "
                    + "fails again, raise the limits of the process."
            )
        }
        unsafe self.multi = unsafe multi
        unsafe self.sessions = unsafe sessions
        let result = unsafe ccurl_share_set_long(sessions, CURLSHOPT_SHARE, Int(CURL_LOCK_DATA_SSL_SESSION.rawValue))
        guard result == CURLSHE_OK else {
            throw HTTPError(kind: .other, message: unsafe String(cString: curl_share_strerror(result)))
        }
        // The limit of connections that libcurl has handed over and takes for idle: those for HTTP/2 to all hosts.
        // There is no limit for one host, at which libcurl 7.88 closes one that it has just made.
        try set(CURLMOPT_MAXCONNECTS, configuration.maximumInFlight * 4)
    }

    deinit {
        let result = unsafe curl_multi_cleanup(multi)
        assert(result == CURLM_OK, "a transfer is still in the multi handle")
        let shareResult = unsafe curl_share_cleanup(sessions)
        assert(shareResult == CURLSHE_OK, "a transfer outlived the TLS sessions")
    }

    func wakeUp() {
        let result = unsafe curl_multi_wakeup(multi)
        assert(result == CURLM_OK, "curl_multi_wakeup failed")
    }

    /// Begins the work of a handle, with the sessions of all others.
    func add(_ handle: EasyHandle) throws(HTTPError) {
        try handle.check(unsafe ccurl_easy_set_pointer(handle.easy, CURLOPT_SHARE, sessions))
        try check(unsafe curl_multi_add_handle(multi, handle.easy))
    }

    /// Removes a handle, and ends its transfer or its connection.
    func remove(_ handle: EasyHandle) {
        let result = unsafe curl_multi_remove_handle(multi, handle.easy)
        assert(result == CURLM_OK, "a handle was removed that is not in the multi handle")
    }

    /// Reads, writes and checks timeouts for every transfer, without waiting.
    func perform() throws(HTTPError) {
        var running: Int32 = 0
        try check(unsafe curl_multi_perform(multi, &running))
    }

    /// Returns whether a socket of a transfer is ready, without waiting.
    ///
    /// `curl_multi_poll` would take a wake-up for which the next ``wait(milliseconds:for:)`` must return.
    func hasReadySocket() throws(HTTPError) -> Bool {
        var ready: Int32 = 0
        try check(unsafe curl_multi_wait(multi, nil, 0, 0, &ready))
        return ready > 0
    }

    /// Waits for a socket of libcurl's or of the array, one of libcurl's timers, ``wakeUp()`` or the limit.
    func wait(milliseconds limit: Int32, for sockets: inout [curl_waitfd]) throws(HTTPError) {
        try check(unsafe curl_multi_poll(multi, &sockets, UInt32(sockets.count), limit, nil))
    }

    /// Returns the next handle whose transfer has ended or whose connection is made, with libcurl's result code.
    func nextEnded() -> (handle: EasyHandle, code: UInt32)? {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle,
                let handle = unsafe EasyHandle.of(easy: easy)
            else { continue }
            return (handle, unsafe message.pointee.data.result.rawValue)
        }
        return nil
    }

    /// libcurl must be initialized once per process, before any other call.
    private static let globalResult = {
        OpenSSL.prepare()
        return ccurl_global_init()
    }()

    private func set(_ option: CURLMoption, _ value: Int) throws(HTTPError) {
        try check(unsafe ccurl_multi_set_long(multi, option, value))
    }

    private func check(_ result: CURLMcode) throws(HTTPError) {
        guard result != CURLM_OK else { return }
        throw HTTPError(kind: .other, message: unsafe String(cString: curl_multi_strerror(result)))
    }
}

extension HTTPClient {
    /// The version of libcurl, from a text such as `libcurl/7.88.1 OpenSSL/3.0.17 zlib/1.2.13`.
    package static var curlVersion: String {
        let library = unsafe String(cString: curl_version()).prefix { $0 != " " }
        return String(library.trimmingPrefix("libcurl/"))
    }
}
