import Base

/// A notification to systemd (https://www.freedesktop.org/software/systemd/man/252/sd_notify.html).
enum NotifyMessage: Equatable, Sendable {
    /// Work has begun, or continues after a reload.
    case ready
    /// The configuration is being read again. The time is that of the monotonic clock, in microseconds.
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
