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
    /// The number of plain successes for each one that is logged, and those that passed since.
    let plainSuccesses = Mutex((interval: 1, passed: 0))
    package let metrics: MetricsLog
    package let diagnostics: DiagnosticLog
    package let counters: IntervalCounters
    let time: any TimeSource
    let alarms = Mutex<[AlarmKey: AlarmState]>([:])

    package init(metrics: MetricsLog, diagnostics: DiagnosticLog, counters: IntervalCounters, time: any TimeSource) {
        self.metrics = metrics
        self.diagnostics = diagnostics
        self.counters = counters
        self.time = time
    }

    /// Logs refreshes after their decisions are committed.
    ///
    /// The lines of refreshes without a further line are written together.
    func committed(_ refreshes: [Refresh], at now: Timestamp) {
        var events: [RefreshEvent] = []
        events.reserveCapacity(refreshes.count)
        for refresh in refreshes {
            guard case .stored(let result, let stored) = refresh.phase else { continue }
            let decision = stored.decision
            events.append(RefreshEvent(of: refresh, result, decision, at: now))
            let changes = decision.events + stored.recalled
            guard !changes.isEmpty || decision.alarm != nil else { continue }
            record(events)
            events.removeAll()
            for change in changes { state(change) }
            if let alarm = decision.alarm { raise(alarm.kind, alarm.text, client: refresh.grant.clientID) }
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
                    "grant": events[index].grant, "outcome": events[index].counted.outcome.rawValue,
                    "verdict": events[index].verdict, "reason": events[index].reason,
                ]
            )
        }
    }

    /// Logs one of `interval` plain successes from now on, or none if it is 0.
    package func sample(oneOf interval: Int) {
        plainSuccesses.withLock { if $0.interval != interval { $0 = (interval, 0) } }
    }

    /// Returns the events to log: all but some of the plain successes.
    private func sampled(_ events: [RefreshEvent]) -> [RefreshEvent] {
        plainSuccesses.withLock { sample in
            guard sample.interval != 1 else { return events }
            return events.compactMap { event in
                guard event.isPlainSuccess else { return event }
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

/// The event `refresh`: one try to refresh one grant.
struct RefreshEvent: Sendable {
    static let name = "refresh"
    /// The maximum length of Google's text, in bytes.
    private static let maximumAnswer = 256

    var grant: String
    var counted: CountedRefresh
    var verdict: String
    var reason: String
    var attempt: Int
    var rotated = false
    var forced = false
    var lostScopes: [String] = []
    var status: Int?
    /// Google's text about an error.
    ///
    /// It never holds a token, because the reader of the answer omits the body of a successful one.
    var answer: String?
    /// The number of plain successes that this one stands for, if others have no line.
    var standsFor: Int?

    /// `true` if the grant goes on as before, so that nobody misses the line.
    ///
    /// A rotated token, lost scopes, a retry and a refresh that a caller asked for are part of a grant's history.
    var isPlainSuccess: Bool {
        counted.outcome == .refreshed && attempt == 1 && !rotated && !forced && lostScopes.isEmpty
    }

    func write(into line: inout MetricsLine) {
        line.text("grant", grant, "the grant")
        line.text(
            "outcome",
            counted.outcome.rawValue,
            """
            `refreshed`, `retrying`, `held` (waits for confirmation), `suspended`, `reauth_required`, `disconnected`, \
            `unchanged` (the fault is not the grant's), `void` (a late answer to a replaced refresh token), `lost_lease` \
            (another worker had claimed the grant before the answer came, and tries it)
            """
        )
        line.text(
            "verdict",
            verdict,
            """
            `granted`, the code of Google's error, as in `invalid_grant`, or the kind of fault, as in `http_503` or \
            `timeout`
            """
        )
        line.text(
            "reason",
            reason,
            """
            the reason for the state after the try, as in `grants show`. `answer_lost` is an `invalid_grant` after a \
            request whose answer was never stored, because its worker died: a rotated token might have been lost
            """
        )
        line.number("attempt", attempt, "1 for the first try since the last success")
        line.milliseconds("lateness_ms", max(.zero, counted.lateness), "from the due time to this try; never below 0")
        line.flag("rotated", rotated, "the answer contained another refresh token")
        line.flag("forced", forced, "a caller asked for it before it was due")
        line.text(
            "lost_scopes",
            ifAny: lostScopes.isEmpty ? nil : lostScopes.joined(separator: " "),
            maximum: MetricsLine.maximumScopes,
            "scopes that the grant had and the answer no longer grants"
        )
        line.milliseconds("latency_ms", ifAny: counted.latency, "from the request to the end of its answer")
        line.number("status", ifAny: status, "the answer's HTTP status")
        line.number("stands_for", ifAny: standsFor, "plain successes that this line stands for (`--log-sample`)")
        line.text("answer", ifAny: answer, maximum: Self.maximumAnswer, "Google's text about an error")
    }
}

extension RefreshEvent {
    init(of refresh: Refresh, _ result: RefreshResult, _ decision: RefreshDecision, at now: Timestamp) {
        let reason = decision.grant?.reason ?? .none
        self.init(
            grant: refresh.grant.id.description,
            counted: CountedRefresh(
                outcome: decision.outcome,
                lateness: refresh.grant.dueAt.map { now - $0 - (result.latency ?? .zero) } ?? .zero,
                latency: result.latency
            ),
            verdict: result.code,
            reason: reason.codeOrEmpty,
            attempt: refresh.grant.attempts + 1,
            rotated: decision.events.contains { $0.kind == .rotated },
            forced: refresh.isForced,
            lostScopes: decision.lostScopes,
            status: result.status,
            answer: result.text
        )
    }
}

extension GrantReason {
    /// The code, or an empty text where there is no reason.
    fileprivate var codeOrEmpty: String { self == .none ? "" : rawValue }
}

extension MetricsEvent {
    /// A grant's move from one state to another.
    static func state(_ change: GrantEvent) -> MetricsEvent {
        MetricsEvent("state") { line in
            line.text("grant", change.grant.description, "the grant")
            line.text("from", change.from?.rawValue ?? "", "the former state, as in `active`")
            line.text("to", change.to.rawValue, "the new state")
            line.text("reason", change.reason.codeOrEmpty, "the reason for the new state")
            line.number("generation", Int(change.generation), "the version of the refresh token stored now")
        }
    }

    /// A step of the wall clock.
    static func clockStep(_ step: Duration) -> MetricsEvent {
        MetricsEvent("clock_step") { $0.milliseconds("step_ms", step, "the step; below 0, the clock was set back") }
    }
}
