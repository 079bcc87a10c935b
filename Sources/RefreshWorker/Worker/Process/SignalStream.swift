import Dispatch
import Glibc
import Synchronization

/// SIGTERM, SIGINT and SIGHUP as a stream.
///
/// A second SIGTERM or SIGINT ends the process immediately. The second one is handled on a queue of its own, so it
/// works even if everything else is stalled.
final class SignalStream: Sendable {
    typealias Signal = SignalPolicy.Signal

    /// The latest signal that was not read yet: requests to reload are merged, and a request to stop replaces them.
    let signals: AsyncStream<Signal>

    private let continuation: AsyncStream<Signal>.Continuation
    private let policy = Mutex(SignalPolicy())
    private let sources = Mutex<[SignalSource]>([])

    /// Ignores SIGHUP until the stream listens: what it would read again has just been read, or is read soon.
    static func ignoreHangUps() {
        _ = Glibc.signal(SIGHUP, SIG_IGN)
    }

    /// Starts listening, and returns once every signal is handled, so that none is lost afterwards.
    ///
    /// Announce readiness only afterwards. SIGPIPE is ignored from then on: EPIPE reports a closed connection.
    static func start() async -> SignalStream {
        // This cannot fail for an existing signal. It returns the previous handler.
        _ = Glibc.signal(SIGPIPE, SIG_IGN)
        let stream = SignalStream()
        await stream.listen()
        return stream
    }

    init() {
        (signals, continuation) = AsyncStream.makeStream(of: Signal.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Stops listening and ends the stream.
    func stop() {
        let old = sources.withLock { sources in
            defer { sources = [] }
            return sources
        }
        old.forEach { $0.source.cancel() }
        continuation.finish()
    }

    private func listen() async {
        let queue = DispatchQueue(label: "refresh-worker.signals", qos: .userInteractive)
        for signal in Signal.allCases {
            await withCheckedContinuation { registered in
                // No SIG_IGN here, unlike on Darwin: on Linux Dispatch reads a signalfd, which never receives signals
                // that the process ignores.
                let source = DispatchSource.makeSignalSource(signal: signal.number, queue: queue)
                source.setRegistrationHandler { registered.resume() }
                source.setEventHandler {
                    self.receive(signal, count: Int(source.data))
                }
                source.activate()
                let signalSource = SignalSource(source: source)
                sources.withLock { $0.append(signalSource) }
            }
        }
    }

    func receive(_ signal: Signal, count: Int) {
        switch policy.withLock({ $0.receive(signal, count: count) }) {
        case .deliver(let signal): continuation.yield(signal)
        case .exit(let status): _exit(status)
        case nil: break
        }
    }
}

extension SignalPolicy.Signal {
    fileprivate var number: Int32 {
        switch self {
        case .terminate: SIGTERM
        case .interrupt: SIGINT
        case .hangUp: SIGHUP
        }
    }
}
