private import CGnuTLS
private import CMicroHTTPD
private import Dispatch
private import Glibc

/// libmicrohttpd's threads and connections.
///
/// Each thread is a daemon of its own, on the same socket. In a pool of threads, version 0.9.75 can abort the process
/// when it is quiesced: a thread that has just removed the socket from its set makes `MHD_quiesce_daemon` fail
/// (https://github.com/Karlson2k/libmicrohttpd/blob/v0.9.75/src/microhttpd/daemon.c#L5531). Daemons without a pool
/// allow for that, except between two adjacent checks of a thread. Each has its own descriptor of the socket, because
/// one that does not start closes it.
///
/// `@unchecked Sendable`: libmicrohttpd lets any thread quiesce and stop a daemon, and ``HTTPServer`` calls each once.
@safe
final class MicroHTTPDaemon: @unchecked Sendable {
    private let daemons: [OpaquePointer]
    /// Descriptors of the one listening socket, the first as it was given.
    private let listeners: [Int32]
    private let file: UnixSocketFile?
    private let isShared: Bool
    private let server: Unmanaged<HTTPServer>

    /// TLS 1.2 and 1.3, with forward secrecy and authenticated encryption only: what is in Mozilla's intermediate
    /// configuration (https://wiki.mozilla.org/Security/Server_Side_TLS), so that scanners find nothing to name.
    ///
    /// Finite-field DH is off because it costs much more than elliptic curves
    /// (https://gnutls.org/manual/html_node/Priority-Strings.html).
    private static let priorities: StaticString = """
        PFS:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-DHE-RSA:-MAC-ALL:+AEAD:-AES-128-CCM:-AES-256-CCM\
        :-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1
        """

    init(
        listener: ListeningSocket,
        configuration: HTTPServer.Configuration,
        server: HTTPServer
    ) throws(HTTPServerError) {
        let flags = try Self.flags(for: configuration)
        var options = unsafe Self.options(for: configuration)
        // The reference for the callbacks. `end` releases it.
        unsafe self.server = Unmanaged.passRetained(server)
        let context = unsafe self.server.toOpaque()
        var daemons: [OpaquePointer] = unsafe []
        var listeners = [listener.descriptor]
        for number in 0..<configuration.threads {
            if number > 0 { listeners.append(fcntl(listener.descriptor, F_DUPFD_CLOEXEC, 0)) }
            unsafe options[0].value = Self.connectionLimit(ofDaemon: number, in: configuration)
            unsafe options[1].value = Int(listeners[number])
            guard
                let started = unsafe Self.start(
                    on: listeners[number],
                    flags: flags,
                    options: &options,
                    context: context
                )
            else {
                let reason = errno
                for index in unsafe daemons.indices {
                    _ = unsafe MHD_quiesce_daemon(daemons[index])
                    unsafe MHD_stop_daemon(daemons[index])
                }
                unsafe self.server.release()
                // libmicrohttpd does not say whether it has closed the listening socket, so the socket is left as it
                // is.
                throw HTTPServerError(code: .cannotStart, message: "libmicrohttpd did not start", systemError: reason)
            }
            unsafe daemons.append(started)
        }
        unsafe self.daemons = daemons
        self.listeners = listeners
        file = listener.file
        isShared = listener.isShared
    }

    private static func flags(for configuration: HTTPServer.Configuration) throws(HTTPServerError) -> UInt32 {
        let flags =
            MHD_USE_INTERNAL_POLLING_THREAD.rawValue | MHD_USE_EPOLL.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
        guard configuration.certificate != nil else { return flags }
        guard MHD_is_feature_supported(.FEATURE_TLS) == .YES else {
            throw HTTPServerError(code: .cannotStart, message: "this libmicrohttpd was built without TLS")
        }
        return flags | MHD_USE_TLS.rawValue
    }

    /// Returns the options of all daemons: the first two are set for each of them.
    @unsafe
    private static func options(for configuration: HTTPServer.Configuration) -> [MHD_OptionItem] {
        let option = { (option: MHD_OPTION, value: Int) in
            unsafe MHD_OptionItem(option: option, value: value, ptr_value: nil)
        }
        var options = unsafe [
            option(.CONNECTION_LIMIT, 0),
            option(.LISTEN_SOCKET, 0),
            // The request's head, the list of its fields and the response's head must fit.
            option(.CONNECTION_MEMORY_LIMIT, 2 * configuration.limits.headBytes),
            // Not the default: it refuses a request without Host or with a misplaced space, as RFC 9112 requires.
            option(.STRICT_FOR_CLIENT, 1),
        ]
        if configuration.certificate != nil {
            let priorities = unsafe UnsafeMutableRawPointer(mutating: Self.priorities.utf8Start)
            unsafe options.append(MHD_OptionItem(option: .HTTPS_PRIORITIES, value: 0, ptr_value: priorities))
            // `connectionChanged` gives each session its certificate, so that a reload does not need a new daemon. The
            // library's own callback has no context, and GnuTLS does not keep what it returns.
            unsafe options.append(
                MHD_OptionItem(option: .HTTPS_CERT_CALLBACK, value: 0, ptr_value: shim_refusing_callback())
            )
        }
        unsafe options.append(option(.END, 0))
        return unsafe options
    }

    /// Returns the number of connections that one of the daemons takes, of those that all take together.
    private static func connectionLimit(ofDaemon number: Int, in configuration: HTTPServer.Configuration) -> Int {
        let (share, rest) = configuration.maximumConnections.quotientAndRemainder(dividingBy: configuration.threads)
        return max(1, share + (number < rest ? 1 : 0))
    }

    private static func start(
        on socket: Int32,
        flags: UInt32,
        options: inout [MHD_OptionItem],
        context: UnsafeMutableRawPointer
    ) -> OpaquePointer? {
        // Without a socket libmicrohttpd would open one of its own.
        guard socket >= 0 else { return nil }
        return unsafe shim_start_daemon(
            flags,
            admits,
            accessed,
            requestLineRead,
            completed,
            connectionChanged,
            context,
            &options
        )
    }

    func stopListening() {
        // MHD_quiesce_daemon gives the listening socket back to its owner. The threads might still use its number until
        // they have ended, so it is not closed before then. After the shutdown it refuses new clients at once.
        for index in unsafe daemons.indices { _ = unsafe MHD_quiesce_daemon(daemons[index]) }
        file?.remove()
        // A shared socket keeps listening: its clients wait for the next process.
        if !isShared { ListeningSocket.shutDown(listeners[0]) }
    }

    /// Joins the threads, which blocks briefly, and closes every connection.
    func end() async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [self] in
                for index in unsafe daemons.indices { unsafe MHD_stop_daemon(daemons[index]) }
                for listener in listeners { close(listener) }
                unsafe server.release()
                continuation.resume()
            }
        }
    }
}

private func requestLineRead(
    _ context: UnsafeMutableRawPointer?,
    _ target: UnsafePointer<CChar>?,
    _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let server = unsafe context.map(HTTPServer.fromContext), let target = unsafe target,
        let client = unsafe connection.flatMap({ unsafe MicroHTTPConnection($0).client })
    else { return nil }
    let bytes = unsafe Array(UnsafeRawBufferPointer(start: target, count: strlen(target)))
    return unsafe Unmanaged.passRetained(server.began(target: bytes, client: client)).toOpaque()
}

private func accessed(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ url: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?,
    _ version: UnsafePointer<CChar>?,
    _ bytes: UnsafePointer<CChar>?,
    _ count: UnsafeMutablePointer<Int>?,
    _ exchange: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let server = unsafe context.map(HTTPServer.fromContext), let connection = unsafe connection,
        let method = unsafe method, let version = unsafe version, let count = unsafe count,
        let exchange = unsafe exchange?.pointee
    else { return .NO }
    let received = unsafe UnsafeRawBufferPointer(start: bytes, count: count.pointee)
    unsafe count.pointee = 0
    let continues = unsafe server.advance(
        Unmanaged<Exchange>.fromOpaque(exchange).takeUnretainedValue(),
        on: MicroHTTPConnection(connection),
        bytes: received.bytes,
        method: { unsafe String(cString: method) },
        head: { connection in unsafe connection.head(method: method, version: version) }
    )
    return continues ? .YES : .NO
}

private func completed(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ exchange: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ reason: MHD_RequestTerminationCode
) {
    guard let server = unsafe context.map(HTTPServer.fromContext), let exchange = unsafe exchange?.pointee else {
        return
    }
    server.ended(unsafe Unmanaged<Exchange>.fromOpaque(exchange).takeRetainedValue())
}

private func admits(
    _ context: UnsafeMutableRawPointer?,
    _ address: UnsafePointer<sockaddr>?,
    _ size: socklen_t
) -> MHD_Result {
    guard let server = unsafe context.map(HTTPServer.fromContext) else { return .NO }
    return server.clients.admits(unsafe NetworkAddress(peer: UnsafeRawPointer(address))) ? .YES : .NO
}

private func connectionChanged(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ client: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ change: MHD_ConnectionNotificationCode
) {
    guard let server = unsafe context.map(HTTPServer.fromContext), let pointer = unsafe connection,
        let client = unsafe client
    else { return }
    if change == .CONNECTION_NOTIFY_STARTED {
        let connection = unsafe MicroHTTPConnection(pointer)
        let certificate = server.certificate
        let made = server.clients.connected(
            descriptor: connection.socket,
            network: connection.network,
            certificate: certificate
        )
        if let certificate { connection.present(certificate) }
        unsafe client.pointee = unsafe Unmanaged.passRetained(made).toOpaque()
    } else if let made = unsafe client.pointee {
        unsafe client.pointee = nil
        server.clients.disconnected(unsafe Unmanaged<ServerConnection>.fromOpaque(made).takeRetainedValue())
    }
}

extension HTTPServer {
    fileprivate static func fromContext(_ context: UnsafeMutableRawPointer) -> HTTPServer {
        unsafe Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    }
}
