import Base
import Glibc
import Synchronization
import Telemetry

/// Notifies systemd about the worker's state, if systemd asked for it.
///
/// Otherwise it does nothing.
struct SystemdNotifier: Sendable {
    private let socket: NotifySocket?
    /// The interval within which systemd expects ``NotifyMessage/watchdog``, or `nil` without a watchdog.
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
        let (interval, invalidVariable) = Self.interval(environment, processID: processID)
        watchdogInterval = interval
        if let invalidVariable {
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
    func notify(_ messages: [NotifyMessage], _ diagnostics: DiagnosticLog) {
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

    /// Returns the interval, and the variable that is not a positive whole number.
    private static func interval(
        _ environment: [String: String],
        processID: Int32
    ) -> (interval: Duration?, invalidVariable: String?) {
        guard let text = environment["WATCHDOG_USEC"], !text.isEmpty else { return (nil, nil) }
        guard let microseconds = Int64(text), microseconds > 0 else { return (nil, "WATCHDOG_USEC") }
        if let text = environment["WATCHDOG_PID"], !text.isEmpty {
            guard let watchedID = Int32(text), watchedID > 0 else { return (nil, "WATCHDOG_PID") }
            // The variables belong to the parent process.
            guard watchedID == processID else { return (nil, nil) }
        }
        return (.microseconds(microseconds), nil)
    }
}

/// A notification to systemd (https://www.freedesktop.org/software/systemd/man/252/sd_notify.html).
enum NotifyMessage: Equatable, Sendable {
    /// Work has begun, or continues after a reload.
    case ready
    /// The configuration is being read again.
    ///
    /// The time is that of the monotonic clock, in microseconds.
    case reloading(monotonicMicroseconds: Int64)
    case stopping
    /// The start takes longer, up to this time from now.
    case extendStart(by: Duration)
    /// One line for `systemctl status`.
    case status(String)
    /// Every loop is running.
    case watchdog

    /// systemd keeps a status of up to this size, and a datagram must hold it.
    private static let maximumStatusLength = 512

    /// The assignments of the protocol, without a line end after the last.
    var assignments: String {
        switch self {
        case .ready: "READY=1"
        case .reloading(let microseconds): "RELOADING=1\nMONOTONIC_USEC=\(microseconds)"
        case .stopping: "STOPPING=1"
        case .extendStart(let span): "EXTEND_TIMEOUT_USEC=\(span.wholeMilliseconds * 1000)"
        // A line end would begin another assignment.
        case .status(let text):
            "STATUS=" + String(text.prefix(Self.maximumStatusLength).map { $0.isNewline ? " " : $0 })
        case .watchdog: "WATCHDOG=1"
        }
    }
}

/// The address of systemd's notification socket: a path, or a name in Linux's abstract namespace written as `@name`
/// (https://man7.org/linux/man-pages/man7/unix.7.html).
final class NotifySocket: Sendable {
    /// Open from the start: without it, the watchdog would end a worker that has no free descriptor.
    private let descriptor: Int32
    /// The bytes of `sun_path`, with the leading zero of an abstract name or the closing one of a path.
    private let path: [UInt8]

    /// Returns `nil` for an address that is neither a path nor an abstract name, or is too long for a socket address.
    init?(address: String) {
        let bytes = Array(address.utf8)
        guard bytes.count > 1, !bytes.contains(0) else { return nil }
        switch bytes.first {
        case UInt8(ascii: "/"): path = bytes + [0]
        case UInt8(ascii: "@"): path = [0] + bytes.dropFirst()
        default: return nil
        }
        guard path.count <= MemoryLayout<sockaddr_un>.size - Self.pathOffset else { return nil }
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    deinit {
        close(descriptor)
    }

    private static var pathOffset: Int { MemoryLayout<sa_family_t>.size }

    /// Sends one datagram.
    func send(_ message: [UInt8]) throws(SystemCallError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
        let length = socklen_t(Self.pathOffset + path.count)
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let sent = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe sendto(descriptor, message, message.count, flags, generic, length)
            }
        }
        guard sent == message.count else { throw SystemCallError(call: "sendto", code: errno) }
    }
}

/// The time of the last iteration of each of the worker's loops, so that the watchdog is fed only while all of them
/// run.
final class LoopHeartbeats: Sendable {
    /// A loop that must keep running, even without work.
    enum Loop: String, CaseIterable, Hashable, Sendable {
        /// Reads the grants that are due.
        case scan
        /// Commits results.
        case store
        /// Drives the requests in flight.
        case http
    }

    private let time: any TimeSource
    private let lastIterations: Mutex<[Loop: BootInstant]>

    /// Starts as if every loop had just completed an iteration, so each has one interval for its first.
    init(loops: Set<Loop> = Set(Loop.allCases), time: any TimeSource) {
        self.time = time
        let now = time.sinceBoot
        lastIterations = Mutex(Dictionary(uniqueKeysWithValues: loops.map { ($0, now) }))
    }

    /// Records an iteration of a loop.
    ///
    /// A loop that is not monitored is ignored.
    func record(_ loop: Loop) {
        let now = time.sinceBoot
        lastIterations.withLock { iterations in
            if iterations[loop] != nil {
                iterations[loop] = now
            }
        }
    }

    /// Returns the monitored loops without an iteration at or after an instant, sorted by name.
    func stalled(since instant: BootInstant) -> [Loop] {
        lastIterations.withLock { iterations in
            iterations.filter { $0.value < instant }.keys.sorted { $0.rawValue < $1.rawValue }
        }
    }
}

/// The decision whether to feed systemd's watchdog: a worker is alive only while all of its loops run. If it is not fed
/// for long, systemd kills and restarts the worker.
extension LoopHeartbeats {
    /// A healthy loop completes an iteration within this time: the slowest runs every five seconds, and a slow disk can
    /// delay it.
    private static let minimumTimeout: Duration = .seconds(20)
    /// Feeding more often would only cost time.
    private static let minimumPeriod: Duration = .milliseconds(100)

    /// Returns the pause between two decisions: half the watchdog's interval, as sd_watchdog_enabled(3) recommends.
    static func feedingPeriod(_ interval: Duration) -> Duration { max(interval / 2, minimumPeriod) }

    /// Returns the loops because of which the watchdog is not fed.
    ///
    /// A loop counts as running if it completed an iteration within the interval, or within 20 s if the interval is
    /// shorter.
    func stalled(within interval: Duration) -> [Loop] {
        stalled(since: time.sinceBoot + (.zero - max(interval, Self.minimumTimeout)))
    }
}
