package import Base
private import Synchronization

/// Counts the worker's actions since its start.
///
/// The numbers only grow, as Prometheus requires.
package final class LifetimeCounters: Sendable {
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

        fileprivate mutating func record(isToken: Bool, duration: Duration) {
            if isToken { tokens += 1 } else { errors += 1 }
            self.duration.record(duration)
        }
    }

    /// The counts so far.
    package struct Counts: Sendable {
        package fileprivate(set) var refreshes: [RefreshOutcome: Int] = [:]
        package fileprivate(set) var refreshDuration = DurationBuckets()
        package fileprivate(set) var vends: [String: Int] = [:]
        package fileprivate(set) var vendDuration = DurationBuckets()
        /// The same requests by the name of the service, if it is known.
        package fileprivate(set) var services: [String: Vends] = [:]
        package fileprivate(set) var requests: [Requests: Int] = [:]
        package fileprivate(set) var notices: [String: Int] = [:]
        package fileprivate(set) var securityEvents: [String: Int] = [:]
        package fileprivate(set) var alarms: [AlarmKind: Int] = [:]
    }

    package let startedAt: Timestamp
    private let state = Mutex(Counts())

    init(time: any TimeSource) {
        startedAt = time.now
    }

    package var counts: Counts { state.withLock { $0 } }

    func record(_ refreshes: [CountedRefresh]) {
        state.withLock { counts in
            for index in refreshes.indices {
                if let latency = refreshes[index].latency { counts.refreshDuration.record(latency) }
            }
            for run in refreshes.outcomes { counts.refreshes[run.outcome, default: 0] += run.count }
        }
    }

    /// Counts a request for a token by its outcome, as in the event `vend`, and the duration of its answer.
    package func recordVend(outcome: String, of service: String? = nil, isToken: Bool = true, duration: Duration) {
        state.withLock { counts in
            counts.vends[outcome, default: 0] += 1
            counts.vendDuration.record(duration)
            if let service { counts.services[service, default: Vends()].record(isToken: isToken, duration: duration) }
        }
    }

    /// Counts an HTTP request.
    ///
    /// `route` is the pattern of its route, or `-` if no route matches.
    package func recordRequest(route: String, status: Int) {
        let key = Requests(route: route, statusClass: "\(status / 100)xx")
        state.withLock { $0.requests[key, default: 0] += 1 }
    }

    /// Counts one delivery of a notice by its outcome, as a code.
    package func recordNotice(outcome: String) {
        state.withLock { $0.notices[outcome, default: 0] += 1 }
    }

    /// Counts a line of the event `alarm`.
    package func recordAlarm(_ kind: AlarmKind) {
        state.withLock { $0.alarms[kind, default: 0] += 1 }
    }

    /// Counts a security event by the last part of its type, as a code.
    package func recordSecurityEvent(kind: String) {
        state.withLock { $0.securityEvents[kind, default: 0] += 1 }
    }
}
