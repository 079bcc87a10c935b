import Dispatch

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// One request and its response over a connection of its own.
///
/// The variables are only used on `queue`, so the class is safe to share. An actor would not do: Dispatch calls back on
/// a queue.
final class UnixSocketExchange: @unchecked Sendable {
    typealias Outcome = CheckedContinuation<WorkerTokens.Response, any Error>

    /// The wait before another try while the worker accepts connections more slowly than they come.
    private static let connectPause = DispatchTimeInterval.milliseconds(20)

    private let queue = DispatchQueue(label: "WorkerTokens.UnixSocketExchange")
    private let path: String
    private let timeout: Double
    private var unsent: ArraySlice<UInt8>
    private var parser = HTTPResponseParser()
    private var outcome: Outcome?
    private var isOver = false
    private var timer: (any DispatchSourceTimer)?
    /// Watches the connection: first until all is sent, then until all is received.
    private var watch: (any DispatchSourceProtocol)?

    init(path: String, bytes: [UInt8], timeout: Double) {
        self.path = path
        self.timeout = timeout
        unsent = bytes[...]
    }

    func start(_ outcome: Outcome) {
        queue.async { [self] in
            guard !isOver else { return outcome.resume(throwing: CancellationError()) }
            self.outcome = outcome
            startTimer()
            connect()
        }
    }

    func cancel() {
        queue.async { [self] in finish(.failure(CancellationError())) }
    }

    private func startTimer() {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + timeout)
        timer.setEventHandler { [self] in finish(.failure(UnixSocketError.timedOut)) }
        timer.activate()
        self.timer = timer
    }

    private func finish(_ result: Result<WorkerTokens.Response, any Error>) {
        guard !isOver else { return }
        isOver = true
        // The handlers refer to this object until their sources are cancelled.
        timer?.cancel()
        timer = nil
        watch?.cancel()
        watch = nil
        outcome?.resume(with: result)
        outcome = nil
    }

    // MARK: Connecting

    private func connect() {
        guard !isOver else { return }
        let descriptor = Self.makeSocket()
        guard descriptor >= 0 else { return fail("socket", errno) }
        if Self.connect(descriptor, to: path) {
            return send(over: descriptor)
        }
        let error = errno
        close(descriptor)
        // Linux says so if the queue of connections that wait to be accepted is full.
        guard error == EAGAIN else { return fail("connect", error) }
        queue.asyncAfter(deadline: .now() + Self.connectPause) { [self] in connect() }
    }

    private func fail(_ call: String, _ error: Int32) {
        finish(.failure(UnixSocketError.system(call: call, errno: error)))
    }

    // MARK: Sending

    private func send(over descriptor: Int32) {
        let source = DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [self] in sendMore(over: descriptor, until: source) }
        // A source must be cancelled before its descriptor is closed.
        source.setCancelHandler { [self] in
            if isOver { close(descriptor) } else { receive(from: descriptor) }
        }
        watch = source
        source.activate()
    }

    private func sendMore(over descriptor: Int32, until source: any DispatchSourceWrite) {
        while !isOver, !unsent.isEmpty {
            let count = unsent.withUnsafeBytes { sendWithoutSignal(descriptor, $0.baseAddress, $0.count) }
            guard count >= 0 else {
                if errno == EINTR { continue }
                if errno != EAGAIN { fail("send", errno) }
                return
            }
            unsent = unsent.dropFirst(count)
        }
        source.cancel()
    }

    // MARK: Receiving

    private func receive(from descriptor: Int32) {
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [self] in receiveMore(from: descriptor) }
        source.setCancelHandler { close(descriptor) }
        watch = source
        source.activate()
    }

    /// Receives everything that has come. On Linux there is no other event after the one for a closed connection, which
    /// can still have bytes to read.
    private func receiveMore(from descriptor: Int32) {
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while !isOver {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            guard count >= 0 else {
                if errno == EINTR { continue }
                if errno != EAGAIN { fail("recv", errno) }
                return
            }
            read(chunk[..<count])
        }
    }

    /// Reads received bytes. None are the end of the connection.
    private func read(_ received: ArraySlice<UInt8>) {
        do throws(UnixSocketError) {
            if received.isEmpty {
                finish(.success(try parser.end()))
            } else if let response = try parser.add(received) {
                finish(.success(response))
            }
        } catch {
            finish(.failure(error))
        }
    }

    // MARK: The system's calls

    /// Returns a socket that never blocks and that other programs do not inherit, or a negative number.
    private static func makeSocket() -> Int32 {
        #if canImport(Darwin)
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
            guard descriptor >= 0 else { return descriptor }
            var isOn: Int32 = 1
            // Sending over a closed connection must not end the process.
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #elseif canImport(Musl)
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
            guard descriptor >= 0 else { return descriptor }
        #else
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            guard descriptor >= 0 else { return descriptor }
        #endif
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        return descriptor
    }

    private static func connect(_ descriptor: Int32, to path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connectSocket(descriptor, $0, length) == 0 }
        }
    }
}

/// The system's `connect`, which a method of the same name hides in the class.
private func connectSocket(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
    connect(descriptor, address, length)
}

/// Sends bytes. A closed connection is an error, not a signal that ends the process.
private func sendWithoutSignal(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    #if canImport(Darwin)
        send(descriptor, bytes, count, 0)
    #else
        send(descriptor, bytes, count, Int32(MSG_NOSIGNAL))
    #endif
}
