private import CMicroHTTPD
private import Dispatch
private import Glibc
private import Synchronization

/// An HTTP/1.1 server: requests in, answers out, limits.
///
/// A few libmicrohttpd threads read and write all connections. A connection whose request is with the handler is suspended,
/// so a slow handler blocks no thread. A client that hangs up meanwhile cancels the handler's task, within a quarter of a
/// second; a client that only closed its sending side is no different to see, so a handler may ignore that and answer.
///
/// The server runs until ``stop(within:)``; dropping the last reference does not end it.
package final class HTTPServer: Sendable {
    package typealias Handler = @Sendable (ServerRequest) async -> ServerReply

    /// Where to listen, and the limits.
    package struct Configuration: Sendable {
        /// IPv4 or IPv6, in figures.
        package var address: String

        /// 0 takes any free port.
        package var port: UInt16

        package var threads: Int

        /// A longer body is answered with 413.
        package var maximumBodyBytes: Int

        /// Further clients wait in the system's queue.
        package var maximumConnections: Int

        /// A connection on which nothing moves is closed; a request that is with the handler does not count as still.
        package var idleTimeout: Duration

        package init(
            address: String = "127.0.0.1",
            port: UInt16 = 0,
            threads: Int = 1,
            maximumBodyBytes: Int = 65_536,
            maximumConnections: Int = 4096,
            idleTimeout: Duration = .seconds(60)
        ) {
            self.address = address
            self.port = port
            self.threads = threads
            self.maximumBodyBytes = maximumBodyBytes
            self.maximumConnections = maximumConnections
            self.idleTimeout = idleTimeout
        }
    }

    private struct Life {
        var daemon: Daemon?
        var ending: Task<Void, Never>?
    }

    /// The port it listens on.
    package let port: UInt16

    let maximumBodyBytes: Int
    let handler: Handler
    let exchanges = OpenExchanges()
    private let life = Mutex(Life())

    /// Starts to listen and to serve.
    package init(configuration: Configuration, handler: @escaping Handler) throws(HTTPServerError) {
        let listener = try ListeningSocket(address: configuration.address, port: configuration.port)
        port = listener.port
        maximumBodyBytes = configuration.maximumBodyBytes
        self.handler = handler
        let daemon = try Daemon(listener: listener, configuration: configuration, server: self)
        life.withLock { $0.daemon = daemon }
    }

    /// The number of requests that have begun and whose answer is not wholly sent.
    package var openRequests: Int { exchanges.count }

    /// Stops listening, lets begun requests have their answers for that long, then closes what is left.
    ///
    /// It may be called twice, at once or one after the other; every call returns when the server has ended.
    package func stop(within grace: Duration = .seconds(5)) async {
        let ending = life.withLock { life in
            if let ending = life.ending { return ending }
            let daemon = life.daemon.take()
            let ending = Task {
                guard let daemon else { return }
                daemon.stopListening()
                await exchanges.drained(within: grace)
                exchanges.abandonAll()
                await daemon.end()
            }
            life.ending = ending
            return ending
        }
        await ending.value
    }
}

/// libmicrohttpd's threads and connections.
///
/// `@unchecked Sendable`: libmicrohttpd lets any thread quiesce and stop a daemon, and ``HTTPServer`` calls each once.
@safe
private final class Daemon: @unchecked Sendable {
    private let pointer: OpaquePointer
    private let listener: Int32
    private let server: Unmanaged<HTTPServer>

    init(
        listener: consuming ListeningSocket,
        configuration: HTTPServer.Configuration,
        server: HTTPServer
    ) throws(HTTPServerError) {
        let option = { (option: MHD_OPTION, value: Int) in
            unsafe MHD_OptionItem(option: option, value: value, ptr_value: nil)
        }
        var options = unsafe [
            option(.LISTEN_SOCKET, Int(listener.descriptor)),
            option(.CONNECTION_LIMIT, configuration.maximumConnections),
            option(.CONNECTION_TIMEOUT, Int(configuration.idleTimeout.components.seconds)),
        ]
        // Not its default: a request without Host or with a space in the wrong place is refused, as RFC 9112 says.
        unsafe options.append(option(.STRICT_FOR_CLIENT, 1))
        // A pool of one is refused with a complaint: one thread is what there is without a pool.
        if configuration.threads > 1 {
            unsafe options.append(option(.THREAD_POOL_SIZE, configuration.threads))
        }
        unsafe options.append(option(.END, 0))

        let flags =
            MHD_USE_INTERNAL_POLLING_THREAD.rawValue | MHD_USE_EPOLL.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
        // The callbacks' reference, given back in `end`.
        unsafe self.server = Unmanaged.passRetained(server)
        let context = unsafe self.server.toOpaque()
        let started = unsafe shim_start_daemon(flags, accessed, requestLineRead, completed, context, &options)
        guard let started = unsafe started else {
            let reason = errno
            unsafe self.server.release()
            // The listening socket may be closed by now or not: libmicrohttpd does not say, so it is left alone.
            throw HTTPServerError(code: .cannotStart, message: "libmicrohttpd did not start", systemError: reason)
        }
        unsafe pointer = unsafe started
        self.listener = listener.descriptor
    }

    func stopListening() {
        // It gives the listening socket back to whoever opened it. The threads may still look at its number until they have
        // ended, so it is not closed before; shut down, it refuses new clients at once.
        _ = unsafe MHD_quiesce_daemon(pointer)
        shutdown(listener, Int32(SHUT_RDWR))
    }

    /// Joins the threads, which blocks for a moment, and closes every connection.
    func end() async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [self] in
                unsafe MHD_stop_daemon(pointer)
                close(listener)
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
    guard let server = unsafe context.map(HTTPServer.recovered), let target = unsafe target else { return nil }
    return unsafe Unmanaged.passRetained(server.began(target: unsafe Array(String(cString: target).utf8))).toOpaque()
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
    guard let server = unsafe context.map(HTTPServer.recovered), let connection = unsafe connection,
        let method = unsafe method, let count = unsafe count, let exchange = unsafe exchange?.pointee
    else { return .NO }
    let received = unsafe UnsafeRawBufferPointer(start: bytes, count: count.pointee)
    unsafe count.pointee = 0
    let isFine = unsafe server.turn(
        Unmanaged<Exchange>.fromOpaque(exchange).takeUnretainedValue(),
        Connection(connection),
        method: String(cString: method),
        bytes: received.bytes
    )
    return isFine ? .YES : .NO
}

private func completed(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ exchange: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ reason: MHD_RequestTerminationCode
) {
    guard let server = unsafe context.map(HTTPServer.recovered), let exchange = unsafe exchange?.pointee else { return }
    server.ended(unsafe Unmanaged<Exchange>.fromOpaque(exchange).takeRetainedValue())
}

extension HTTPServer {
    fileprivate static func recovered(_ context: UnsafeMutableRawPointer) -> HTTPServer {
        unsafe Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    }
}
