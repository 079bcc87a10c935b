/// Decides the action for a signal, given the signals before it.
struct SignalPolicy: Sendable {
    /// The signals that the worker handles.
    enum Signal: CaseIterable, Hashable, Sendable {
        /// SIGTERM: stop gracefully.
        case terminate
        /// SIGINT, from a terminal: the same.
        case interrupt
        /// SIGHUP: read the configuration again and reopen the logs.
        case hangUp

        /// The name in logs and messages.
        var name: String {
            switch self {
            case .terminate: "SIGTERM"
            case .interrupt: "SIGINT"
            case .hangUp: "SIGHUP"
            }
        }
    }

    enum Action: Equatable, Sendable {
        case deliver(Signal)
        /// End the process immediately: this is the second request.
        case exit(status: Int32)
    }

    private var isStopping = false

    /// Handles a signal that arrived `count` times.
    ///
    /// Returns `nil` for a reload after a request to stop.
    mutating func receive(_ signal: Signal, count: Int = 1) -> Action? {
        guard signal != .hangUp else { return isStopping ? nil : .deliver(signal) }
        if isStopping || count > 1 { return .exit(status: ExitCode(signal).rawValue) }
        isStopping = true
        return .deliver(signal)
    }
}

extension ExitCode {
    /// The code of a command that a signal stopped: the one a shell reports for a process that a signal killed.
    init(_ signal: SignalPolicy.Signal) {
        switch signal {
        case .hangUp: self = .hungUp
        case .interrupt: self = .interrupted
        case .terminate: self = .terminated
        }
    }
}
