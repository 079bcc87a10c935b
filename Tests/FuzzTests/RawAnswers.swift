import Glibc
import Synchronization

/// A TCP server on loopback that reads one request from each connection and answers with given bytes.
final class RawAnswers: Sendable {
    struct Failure: Error {
        let code = errno
    }

    let port: UInt16
    private let bytes = Mutex<[UInt8]>([])

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = RawRequest.loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(listener, generic, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, generic, &length) == 0
            }
        }
        guard isListening else { throw Failure() }
        port = UInt16(bigEndian: address.sin_port)
        let thread = AcceptingThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                answer(on: connection)
                close(connection)
            }
        }
        thread.start()
    }

    func next(_ bytes: [UInt8]) {
        self.bytes.withLock { $0 = bytes }
    }

    private func answer(on connection: Int32) {
        RawRequest.limitWaiting(connection)
        var chunk = [UInt8](repeating: 0, count: 4096)
        var request: [UInt8] = []
        while !request.suffix(3).elementsEqual("a=b".utf8) {
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0 else { return }
            request += chunk[..<count]
        }
        RawRequest.sendAll(bytes.withLock { $0 }, on: connection)
    }
}

/// A thread that runs a function which may block.
private final class AcceptingThread: Sendable {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    func start() {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self).toOpaque()
        pthread_create(
            &thread,
            nil,
            { context in
                guard let context else { return nil }
                Unmanaged<AcceptingThread>.fromOpaque(context).takeRetainedValue().body()
                return nil
            },
            context
        )
        pthread_detach(thread)
    }
}
