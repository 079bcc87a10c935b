/// The numbers of the worker's actions since its start. They only grow, as Prometheus requires.
package struct LifetimeCounts: Sendable {
    /// Requests of one route whose answers had a status of one class, such as `2xx`.
    package struct Requests: Hashable, Comparable, Sendable {
        /// The pattern of the route, never the path: a path can name a user, and there are too many paths.
        package var route: String
        package var statusClass: String

        package static func < (left: Requests, right: Requests) -> Bool {
            (left.route, left.statusClass) < (right.route, right.statusClass)
        }
    }

    /// The requests of one service for tokens.
    package struct Vends: Sendable {
        package var tokens = 0
        package var errors = 0
        package var duration = DurationBuckets()

        package init() {}
    }

    package internal(set) var refreshes: [RefreshOutcome: Int] = [:]
    package internal(set) var refreshDuration = DurationBuckets()
    package internal(set) var vends: [String: Int] = [:]
    package internal(set) var vendDuration = DurationBuckets()
    /// The same requests by the name of the service, if it is known.
    package internal(set) var services: [String: Vends] = [:]
    package internal(set) var requests: [Requests: Int] = [:]
    package internal(set) var notices: [String: Int] = [:]
    package internal(set) var securityEvents: [String: Int] = [:]
    package internal(set) var alarms: [AlarmKind: Int] = [:]
    /// Data points and spans that did not get to a collector.
    package internal(set) var droppedTelemetry: [TelemetryDrop: Int] = [:]

    package init() {}
}
