/// How much a diagnostic line matters, the gravest first.
package enum LogLevel: String, CaseIterable, Comparable, Sendable {
    /// Something is broken and stays so until a person acts.
    case error
    /// Something went wrong; the worker goes on and may mend it by itself.
    case warning
    /// Normal, and worth knowing without having asked.
    case notice
    /// What the worker does.
    case info
    /// Everything, for the search of a fault.
    case debug

    package static func < (left: LogLevel, right: LogLevel) -> Bool { left.priority < right.priority }

    /// The number that syslog and the journal know the level by (https://man7.org/linux/man-pages/man3/sd-daemon.3.html).
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
