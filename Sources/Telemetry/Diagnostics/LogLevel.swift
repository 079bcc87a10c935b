/// The severity of a diagnostic line, the most severe first.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
    /// Something is broken and stays broken until a person acts.
    case error
    /// Something went wrong. The worker continues and might recover on its own.
    case warning
    /// Normal, but significant.
    case notice
    /// The worker's regular actions.
    case info
    /// All details, for finding a fault.
    case debug

    package static func < (left: LogLevel, right: LogLevel) -> Bool { left.priority < right.priority }

    /// The number of the level in syslog and the journal (https://man7.org/linux/man-pages/man3/sd-daemon.3.html).
    var priority: Int {
        switch self {
        case .error: 3
        case .warning: 4
        case .notice: 5
        case .info: 6
        case .debug: 7
        }
    }
}
