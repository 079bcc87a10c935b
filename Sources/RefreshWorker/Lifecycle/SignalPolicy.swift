/// Decides what a signal means, given those before it.
struct SignalPolicy: Sendable {
    /// The signals that the worker answers.
    enum Signal: CaseIterable, Hashable, Sendable {
        /// SIGTERM: stop gently.
        case terminate
        /// SIGINT, from a terminal: the same.
        case interrupt
        /// SIGHUP: read the configuration again and reopen the logs.
        case hangUp

        /// As people and logs call it.
        var name: String {
            switch self {
            case .terminate: "SIGTERM"
            case .interrupt: "SIGINT"
            case .hangUp: "SIGHUP"
            }
        }

        /// What a shell reports for a process that ended by this signal: 128 and its number.
        var exitStatus: Int32 { ExitCode(self).rawValue }
    }

    enum Action: Equatable, Sendable {
        /// Hand the signal on.
        case deliver(Signal)
        /// End the process at once: somebody asked twice.
        case exit(status: Int32)
    }

    private var isStopping = false

    /// Takes a signal that arrived, as often as it did.
    mutating func receive(_ signal: Signal, count: Int = 1) -> Action {
        guard signal != .hangUp else { return .deliver(signal) }
        if isStopping || count > 1 { return .exit(status: signal.exitStatus) }
        isStopping = true
        return .deliver(signal)
    }
}
