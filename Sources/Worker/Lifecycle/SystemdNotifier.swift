import Crypto

/// Notifies systemd about the worker's state, if systemd asked for it; otherwise it does nothing.
struct SystemdNotifier: Sendable {
    /// A message that was not sent.
    struct Failure: Error, Equatable, Sendable, CustomStringConvertible {
        let cause: SystemCallError

        var description: String { "systemd was not notified: \(cause)" }
    }

    private let socket: NotifySocket?
    /// The interval within which systemd expects ``NotifyMessage/watchdog``; `nil` without a watchdog.
    let watchdogInterval: Duration?

    /// The problems of the variables, one sentence each.
    ///
    /// They do not end the worker, because keeping grants alive matters more than notifying systemd.
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
        do throws(BadVariable) {
            watchdogInterval = try Self.interval(environment, processID: processID)
        } catch {
            watchdogInterval = nil
            problems.append(
                "\(error.name) is not a positive whole number: the watchdog is not fed; set WatchdogSec= in the unit"
            )
        }
        self.problems = problems
    }

    /// Sends the messages as one datagram, so that systemd sees them together; does nothing outside of systemd.
    ///
    /// It never blocks: if systemd's queue is full, it throws, and the next message tries again.
    func send(_ messages: NotifyMessage...) throws(Failure) {
        guard let socket else { return }
        let text = messages.map(\.assignments).joined(separator: "\n")
        do throws(SystemCallError) {
            try socket.send(Array(text.utf8))
        } catch {
            throw Failure(cause: error)
        }
    }

    private struct BadVariable: Error {
        let name: String
    }

    private static func interval(_ environment: [String: String], processID: Int32) throws(BadVariable) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], !text.isEmpty else { return nil }
        guard let microseconds = Int64(text), microseconds > 0 else {
            throw BadVariable(name: "WATCHDOG_USEC")
        }
        if let text = environment["WATCHDOG_PID"], !text.isEmpty {
            guard let watchedID = Int32(text), watchedID > 0 else { throw BadVariable(name: "WATCHDOG_PID") }
            // The variables belong to the parent process.
            guard watchedID == processID else { return nil }
        }
        return .microseconds(microseconds)
    }
}
