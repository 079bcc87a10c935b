import Base
import Glibc
import Telemetry

/// Notifies systemd about the worker's state, if systemd asked for it.
///
/// Otherwise it does nothing.
struct SystemdNotifier: Sendable {
    private let socket: NotifySocket?
    /// The interval within which systemd expects ``NotifyMessage/watchdog``, or `nil` without a watchdog.
    let watchdogInterval: Duration?

    /// The problems of the variables, one sentence each. They do not end the worker, because keeping grants alive
    /// matters more than notifying systemd.
    let problems: [String]

    /// Reads systemd's variables from the environment: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    init(environment: [String: String], processID: Int32) {
        var problems: [String] = []
        let address = environment["NOTIFY_SOCKET"] ?? ""
        socket = NotifySocket(address: address)
        if socket == nil, !address.isEmpty {
            problems.append(
                "NOTIFY_SOCKET is neither a path nor @ and a name: no notifications are sent; remove it or correct it"
            )
        }
        let watchdog = Watchdog(environment: environment, processID: processID)
        watchdogInterval = watchdog.interval
        if let invalidVariable = watchdog.invalidVariable {
            problems.append(
                "\(invalidVariable) is not a positive whole number: the watchdog is not fed; set WatchdogSec= in the unit"
            )
        }
        self.problems = problems
    }

    /// Sends the messages as one datagram, so that systemd sees them together, and does nothing outside of systemd.
    ///
    /// It never blocks: if systemd's queue is full, it throws, and the next message tries again.
    func send(_ messages: [NotifyMessage]) throws(SystemCallError) {
        try socket?.send(Array(messages.map(\.assignments).joined(separator: "\n").utf8))
    }

    /// Sends the messages, and only logs a failure.
    func notify(_ messages: [NotifyMessage], diagnostics: DiagnosticLog) {
        do throws(SystemCallError) {
            try send(messages)
        } catch {
            diagnostics.debug("systemd", ["error": "systemd was not notified: \(error)"])
        }
    }

    /// The clock that systemd asks for in `MONOTONIC_USEC`.
    ///
    /// The rest of the worker uses the boot clock of its `TimeSource`, which also runs while the machine is suspended.
    /// systemd compares this number with its own CLOCK_MONOTONIC.
    static var monotonicMicroseconds: Int64 {
        var point = timespec()
        // The clock exists on every Linux, so the call cannot fail.
        let result = unsafe clock_gettime(CLOCK_MONOTONIC, &point)  // time: allowed
        precondition(result == 0, "clock_gettime(CLOCK_MONOTONIC) failed with errno \(errno)")
        return Int64(point.tv_sec) * 1_000_000 + Int64(point.tv_nsec) / 1000
    }
}

/// What the environment says about the watchdog.
private struct Watchdog {
    var interval: Duration?
    /// The variable that is not a positive whole number.
    var invalidVariable: String?

    init(environment: [String: String], processID: Int32) {
        guard let text = environment["WATCHDOG_USEC"], !text.isEmpty else { return }
        guard let microseconds = Int64(text), microseconds > 0 else {
            invalidVariable = "WATCHDOG_USEC"
            return
        }
        if let text = environment["WATCHDOG_PID"], !text.isEmpty {
            guard let watchedID = Int32(text), watchedID > 0 else {
                invalidVariable = "WATCHDOG_PID"
                return
            }
            // The variables belong to the parent process.
            guard watchedID == processID else { return }
        }
        interval = .microseconds(microseconds)
    }
}
