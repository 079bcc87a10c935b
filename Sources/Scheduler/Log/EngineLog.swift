package import Base
package import Storage
import Synchronization
package import Telemetry

/// Reports what the engine does: events in the metrics log, lines in the diagnostic log, and alarms.
package final class EngineLog: Sendable {
    /// The number of changes of state that are kept for the status page.
    package static let maximumRecentChanges = 20
    /// The name of plain successes, the only lines that can be left out.
    package static let sampledEvent = "refresh.succeeded"

    private let changes = Mutex<[GrantEvent]>([])
    let routineRefreshes = Mutex(Sampling())
    package let metrics: MetricsLog
    package let diagnostics: DiagnosticLog
    package let counters: EventCounters
    /// The spans for a collector, or `nil` if none gets them.
    package let spans: SpanBuffer?
    let time: any TimeSource
    let alarms = Mutex<[AlarmKey: AlarmState]>([:])

    /// Which of many events are logged.
    struct Sampling {
        /// One of so many is logged, or none if it is 0.
        var interval = 1
        /// The number of events since the last that was logged.
        var passed = 0
    }

    package init(
        metrics: MetricsLog,
        diagnostics: DiagnosticLog,
        counters: EventCounters,
        spans: SpanBuffer? = nil,
        time: any TimeSource
    ) {
        self.metrics = metrics
        self.diagnostics = diagnostics
        self.counters = counters
        self.spans = spans
        self.time = time
    }

    /// Logs refreshes after their decisions are committed.
    ///
    /// The lines of refreshes without a further line are written together.
    func committed(_ refreshes: [Refresh], at now: Timestamp) {
        var events: [RefreshEvent] = []
        events.reserveCapacity(refreshes.count)
        for refresh in refreshes {
            guard let stored = refresh.storedDecision else { continue }
            events.append(RefreshEvent(of: refresh, result: refresh.result, stored: stored, at: now))
            let changes = stored.decision.events + stored.recalled
            let alarm = stored.decision.alarm
            guard !changes.isEmpty || alarm != nil else { continue }
            record(events)
            events.removeAll()
            for change in changes { state(change) }
            if let alarm { raise(alarm.kind, alarm.text, client: refresh.grant.clientID) }
        }
        record(events)
        endAlarms(of: refreshes)
    }

    func record(_ events: [RefreshEvent]) {
        guard !events.isEmpty else { return }
        let logged = sampled(events)
        metrics.record(RefreshEvent.name, count: logged.count) { logged[$0].write(into: &$1) }
        counters.record(events.map(\.counted), notLogged: events.count - logged.count)
        for index in events.indices {
            diagnostics.debug(
                "refresh",
                [
                    "grant": events[index].grant.description, "outcome": events[index].counted.outcome.rawValue,
                    "verdict": events[index].verdict, "reason": events[index].reason,
                ]
            )
        }
    }

    /// Logs one of `interval` plain successes from now on, or none if it is 0.
    package func sample(oneOf interval: Int) {
        routineRefreshes.withLock { if $0.interval != interval { $0 = Sampling(interval: interval) } }
    }

    /// Returns the events to log: all but some of the plain successes.
    private func sampled(_ events: [RefreshEvent]) -> [RefreshEvent] {
        routineRefreshes.withLock { sample in
            guard sample.interval != 1 else { return events }
            return events.compactMap { event in
                guard event.isRoutine else { return event }
                sample.passed += 1
                guard sample.passed == sample.interval else { return nil }
                sample.passed = 0
                var event = event
                event.standsFor = sample.interval
                return event
            }
        }
    }

    /// The last changes of grants' states that this worker made, the newest first.
    package var recentChanges: [GrantEvent] { changes.withLock { $0 } }

    /// Logs a change of a grant's state by the engine, a route or a command.
    package func state(_ event: GrantEvent) {
        guard let from = event.from, from != event.to else { return }
        metrics.record(.state(event))
        changes.withLock { changes in
            if changes.count == Self.maximumRecentChanges { changes.removeLast() }
            changes.insert(event, at: 0)
        }
        diagnostics.info(
            "state",
            [
                "grant": event.grant.description, "from": from.rawValue, "to": event.to.rawValue,
                "reason": event.reason.rawValue,
            ]
        )
    }

    func breakerProbe(client: String) { metrics.record(.breaker(client: client, "probe")) }

    func pacer(client: String, ceiling: Double, paused: Duration, reason: String) {
        metrics.record(.pacer(client: client, ceiling: ceiling, paused: paused, reason: reason))
        diagnostics.notice(
            "throttled by the token endpoint: slowing down",
            ["client": client, "per_second": "\(ceiling)", "paused_seconds": "\(paused.inSeconds)"]
        )
    }

    func clockStep(_ step: Duration) {
        metrics.record(.clockStep(step))
        diagnostics.warning("the machine's clock was stepped", ["seconds": "\(step.inSeconds)"])
    }

    func rescheduled(_ count: Int) {
        guard count > 0 else { return }
        diagnostics.notice("grants stored by a clock that was ahead are refreshed soon", ["grants": "\(count)"])
    }
}
