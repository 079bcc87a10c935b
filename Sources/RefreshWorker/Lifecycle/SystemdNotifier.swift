/// Tells systemd how the worker is, when systemd asked for it; otherwise there is nobody to tell, and that is fine.
struct SystemdNotifier: Sendable {
    /// Why systemd was not told.
    enum Failure: Error, Equatable, Sendable, CustomStringConvertible {
        /// A variable that systemd sets holds something that it does not set.
        case environment(variable: String)
        case system(SystemCallFailure)

        var description: String {
            switch self {
            case .environment(let variable): "\(variable) holds what systemd would not put there"
            case .system(let failure): "systemd was not told: \(failure)"
            }
        }
    }

    private let socket: NotifySocket?
    /// Within which systemd wants ``NotifyMessage/watchdog`` again and again; `nil` when it keeps no watch.
    let watchdogInterval: Duration?

    /// Whether somebody listens.
    var isListened: Bool { socket != nil }

    /// Reads what systemd put into the environment: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    init(environment: [String: String], processID: Int32) throws(Failure) {
        if let address = environment["NOTIFY_SOCKET"], !address.isEmpty {
            guard let socket = NotifySocket(address: address) else {
                throw .environment(variable: "NOTIFY_SOCKET")
            }
            self.socket = socket
        } else {
            socket = nil
        }
        watchdogInterval = try Self.interval(environment, processID: processID)
    }

    /// Sends the messages as one datagram, so that systemd sees them together; does nothing outside of systemd.
    ///
    /// Never blocks: when systemd's queue is full the failure says so, and the next message tries again.
    func send(_ messages: NotifyMessage...) throws(Failure) {
        guard let socket else { return }
        let text = messages.map(\.assignments).joined(separator: "\n")
        do throws(SystemCallFailure) {
            try socket.send(Array(text.utf8))
        } catch {
            throw .system(error)
        }
    }

    private static func interval(_ environment: [String: String], processID: Int32) throws(Failure) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], !text.isEmpty else { return nil }
        guard let microseconds = Int64(text), microseconds > 0 else {
            throw .environment(variable: "WATCHDOG_USEC")
        }
        if let watched = environment["WATCHDOG_PID"], !watched.isEmpty {
            guard let watchedID = Int32(watched), watchedID > 0 else { throw .environment(variable: "WATCHDOG_PID") }
            // The variables were meant for the process that started this one.
            guard watchedID == processID else { return nil }
        }
        return .microseconds(microseconds)
    }
}
