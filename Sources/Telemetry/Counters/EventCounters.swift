package import Base
private import Synchronization

/// Counts what the worker does. Each event is counted by one call, for everybody who reads the counts:
///
///     counters.record(refreshes)
///     counters.lifetime           // for Prometheus: since the start
///     counters.drain()            // for the summary in the metrics log: since the last one
///     counters.takeActivity()     // for the status page: by minute and hour, stored by each heartbeat
package final class EventCounters: Sendable {
    private struct State {
        var lifetime = LifetimeCounts()
        var interval = IntervalCounts()
        var intervalStart: BootInstant
        var activity = RecentActivity()
    }

    package let startedAt: Timestamp
    private let time: any TimeSource
    private let state: Mutex<State>

    package init(time: any TimeSource) {
        self.time = time
        startedAt = time.now
        state = Mutex(State(intervalStart: time.sinceBoot))
    }

    // MARK: Counting

    /// Counts refreshes, of which a number has no line in the metrics log.
    package func record(_ refreshes: [CountedRefresh], notLogged: Int = 0) {
        let now = time.now
        state.withLock { state in
            state.activity.record(refreshes, at: now)
            state.interval.notLogged += notLogged
            for index in refreshes.indices {
                state.interval.lateness.record(refreshes[index].lateness.wholeMilliseconds)
                guard let latency = refreshes[index].latency else { continue }
                state.interval.latency.record(latency.wholeMilliseconds)
                state.lifetime.refreshDuration.record(latency)
            }
            for run in refreshes.outcomes {
                state.interval.outcomes[run.outcome, default: 0] += run.count
                state.lifetime.refreshes[run.outcome, default: 0] += run.count
            }
        }
    }

    /// Counts a request for a token by its outcome, as in the event `vend`, and the duration of its answer.
    package func recordVend(outcome: String, of service: String? = nil, isToken: Bool = true, duration: Duration) {
        state.withLock { state in
            state.lifetime.vends[outcome, default: 0] += 1
            state.lifetime.vendDuration.record(duration)
            guard let service else { return }
            var vends = state.lifetime.services[service] ?? LifetimeCounts.Vends()
            if isToken { vends.tokens += 1 } else { vends.errors += 1 }
            vends.duration.record(duration)
            state.lifetime.services[service] = vends
        }
    }

    /// Counts an HTTP request.
    ///
    /// `route` is the pattern of its route, or `-` if no route matches.
    package func recordRequest(route: String, status: Int) {
        let key = LifetimeCounts.Requests(route: route, statusClass: "\(status / 100)xx")
        state.withLock { $0.lifetime.requests[key, default: 0] += 1 }
    }

    /// Counts one delivery of a notice by its outcome, as a code.
    package func recordNotice(outcome: String) {
        state.withLock { $0.lifetime.notices[outcome, default: 0] += 1 }
    }

    /// Counts a line of the event `alarm`.
    package func recordAlarm(_ kind: AlarmKind) {
        state.withLock { $0.lifetime.alarms[kind, default: 0] += 1 }
    }

    /// Counts a security event by the last part of its type, as a code.
    package func recordSecurityEvent(kind: String) {
        state.withLock { $0.lifetime.securityEvents[kind, default: 0] += 1 }
    }

    /// Counts data points or spans that did not get to a collector.
    package func recordDropped(_ count: Int, of signal: TelemetrySignal, because reason: TelemetryDrop.Reason) {
        let drop = TelemetryDrop(signal: signal, reason: reason)
        state.withLock { $0.lifetime.droppedTelemetry[drop, default: 0] += count }
    }

    // MARK: Reading

    /// The counts since the start.
    package var lifetime: LifetimeCounts { state.withLock(\.lifetime) }

    /// Returns the counts since the last call, and resets them.
    package func drain() -> IntervalCounts {
        let now = time.sinceBoot
        return state.withLock { state in
            var counts = state.interval
            counts.interval = now - state.intervalStart
            state.intervalStart = now
            state.interval = IntervalCounts()
            return counts
        }
    }

    /// The refreshes that are not taken yet.
    package var activity: RecentActivity { state.withLock(\.activity) }

    /// Returns the refreshes since the last call, to be stored.
    package func takeActivity() -> RecentActivity {
        state.withLock { state in
            defer { state.activity = RecentActivity() }
            return state.activity
        }
    }

    /// Takes back refreshes that could not be stored.
    package func restore(_ activity: RecentActivity) {
        let now = time.now
        state.withLock { $0.activity.add(activity, at: now) }
    }
}
