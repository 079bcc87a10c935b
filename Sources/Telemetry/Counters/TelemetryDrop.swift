/// A kind of data that is sent to a collector.
package enum TelemetrySignal: String, CaseIterable, Sendable {
    case metrics
    case traces
}

/// Why data points or spans did not get to a collector.
package struct TelemetryDrop: Hashable, Comparable, Sendable {
    package enum Reason: String, CaseIterable, Sendable {
        /// More than the worker keeps or sends at once.
        case overflow
        /// The collector does not want them.
        case refused
        /// The collector could not be reached in time, or asked to wait for too long.
        case failed
    }

    package let signal: TelemetrySignal
    package let reason: Reason

    package static func < (left: TelemetryDrop, right: TelemetryDrop) -> Bool {
        (left.signal.rawValue, left.reason.rawValue) < (right.signal.rawValue, right.reason.rawValue)
    }
}
