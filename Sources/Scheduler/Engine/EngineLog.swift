package import Base
import Crypto
package import Storage
import Synchronization
package import Telemetry

/// Reports what the engine does: events in the metrics log, lines in the diagnostic log, and alarms.
package final class EngineLog: Sendable {
    /// The pause before an alarm of the same kind about the same client is raised again.
    fileprivate static let alarmPause: Duration = .seconds(3600)
    /// The pause before an alarm that ended can be raised again.
    ///
    /// Short enough to report a new problem, long enough that one that comes and goes does not flood the log.
    private static let renewalPause: Duration = .seconds(300)

    fileprivate struct AlarmKey: Hashable {
        var kind: AlarmKind
        var client: String
    }

    fileprivate struct State {
        var lastRaised: [AlarmKey: BootInstant] = [:]
        var suppressed: [AlarmKey: Int] = [:]
        var current: [AlarmKey: (alarm: CurrentAlarm, lastSeen: BootInstant)] = [:]
        /// The alarms that have ended since they were last raised.
        var ended: Set<AlarmKey> = []
    }

    /// The last changes of state, for the status page.
    package let recentChanges = RecentChanges()
    private let metrics: MetricsLog
    private let diagnostics: DiagnosticLog
    private let counters: IntervalCounters
    private let time: any TimeSource
    private let state = Mutex(State())

    package init(metrics: MetricsLog, diagnostics: DiagnosticLog, counters: IntervalCounters, time: any TimeSource) {
        self.metrics = metrics
        self.diagnostics = diagnostics
        self.counters = counters
        self.time = time
    }

    /// Logs refreshes after their results are committed.
    ///
    /// The lines of refreshes without a further line are written together.
    func committed(_ refreshes: [FinishedRefresh], at now: Timestamp) {
        var events: [RefreshEvent] = []
        events.reserveCapacity(refreshes.count)
        for refresh in refreshes {
            guard let result = refresh.result, let decision = refresh.decision else { continue }
            events.append(Self.event(of: refresh.refresh, result, decision, at: now))
            let changes = decision.events + refresh.recalled
            guard !changes.isEmpty || decision.alarm != nil else { continue }
            record(events)
            events.removeAll()
            for change in changes { state(change) }
            if let alarm = decision.alarm { raise(alarm) }
        }
        record(events)
        endAlarms(of: refreshes)
    }

    /// Ends the alarms that doubt a client id or its secret, for each client id with a success.
    private func endAlarms(of refreshes: [FinishedRefresh]) {
        let doubts: [AlarmKind] = [.clientUnproven, .clientSecretsDiffer]
        let doubted = state.withLock { $0.current.keys.filter { doubts.contains($0.kind) }.map(\.client) }
        guard !doubted.isEmpty else { return }
        let working = Set(
            refreshes.filter { $0.decision?.outcome == .refreshed }.map(\.refresh.grant.clientID)
        )
        for client in doubted where working.contains(client) { end(doubts, client: client) }
    }

    private static func event(
        of refresh: InFlightRefresh,
        _ result: RefreshResult,
        _ decision: RefreshDecision,
        at now: Timestamp
    ) -> RefreshEvent {
        let reason = decision.grant?.reason ?? .none
        return RefreshEvent(
            grant: refresh.grant.id.description,
            outcome: decision.outcome,
            verdict: result.code,
            reason: reason == .none ? "" : reason.rawValue,
            attempt: refresh.grant.attempts + 1,
            lateness: refresh.grant.dueAt.map { now - $0 - (result.latency ?? .zero) } ?? .zero,
            rotated: decision.events.contains { $0.kind == .rotated },
            forced: refresh.isForced,
            lostScopes: decision.lostScopes,
            latency: result.latency,
            status: result.status,
            answer: result.text
        )
    }

    private func record(_ events: [RefreshEvent]) {
        guard !events.isEmpty else { return }
        metrics.record(events)
        counters.record(events)
        for index in events.indices {
            diagnostics.debug(
                "refresh",
                [
                    "grant": events[index].grant, "outcome": events[index].outcome.rawValue,
                    "verdict": events[index].verdict, "reason": events[index].reason,
                ]
            )
        }
    }

    /// Logs a change of a grant's state by the engine, a route or a command.
    package func state(_ event: GrantEvent) {
        guard let from = event.from, from != event.to else { return }
        let grant = event.grant.description
        let reason = event.reason == .none ? "" : event.reason.rawValue
        metrics.record(
            .state(
                grant: grant,
                from: from.rawValue,
                to: event.to.rawValue,
                reason: reason,
                generation: event.generation
            )
        )
        recentChanges.record(
            RecentChanges.Change(
                at: event.at,
                grant: grant,
                from: from.rawValue,
                to: event.to.rawValue,
                reason: reason
            )
        )
        diagnostics.info(
            "state",
            [
                "grant": grant, "from": from.rawValue, "to": event.to.rawValue, "reason": event.reason.rawValue,
            ]
        )
    }

    func breaker(_ change: Breaker.Change, client: String) {
        switch change {
        case .opened(.clientFault(let code)):
            metrics.record(.breaker(client: client, .opened, reason: code))
            raise(
                Alarm(
                    kind: .clientFault,
                    clientID: client,
                    text: """
                        Google refuses the client itself (\(code)): check the client id in the Cloud console; \
                        no grant was changed, and one at a time is tried until it works again
                        """
                ),
                repeats: true
            )
        case .opened(.endpointFailing):
            metrics.record(.breaker(client: client, .opened, reason: "endpoint_failing"))
            raise(
                Alarm(
                    kind: .endpointFailing,
                    clientID: client,
                    text: "the token endpoint does not answer as it should; one grant at a time is tried until it does"
                ),
                repeats: true
            )
        case .closed:
            metrics.record(.breaker(client: client, .closed))
            end([.clientFault, .endpointFailing], client: client)
            diagnostics.notice("the token endpoint works again for this client", ["client": client])
        }
    }

    func breakerProbe(client: String) {
        metrics.record(.breaker(client: client, .probe))
    }

    func pacer(client: String, ceiling: Double, paused: Duration, reason: String) {
        metrics.record(.pacer(client: client, ceiling: ceiling, paused: paused, reason: reason))
        diagnostics.notice(
            "throttled by Google: slowing down",
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

    /// Logs an error of the store, of sealing, or of the spill file.
    package func reportStoreFailure(_ error: any Error, waiting: Int) {
        diagnostics.debug("store", ["error": "\(error)", "waiting": "\(waiting)"])
        let (kind, text): (AlarmKind, String) =
            switch error {
            case let error as StoreError where error.code == .moved: (.storeMoved, error.message)
            case let error as StoreError where error.code == .replaced: (.storeReplaced, error.message)
            case let error as SealError:
                (.sealingFailed, "answers cannot be sealed; they wait in memory until they can: \(error)")
            case let error as SpillFileError: (.spillFailed, error.message)
            default: (.storeFailing, "the store cannot be used, results wait in memory until it can: \(error)")
            }
        raise(Alarm(kind: kind, clientID: "", text: text))
    }

    /// An incident that a store reports once, or missing rows, which are reported until they are back.
    package func incident(_ incident: StoreIncident) {
        let kind: AlarmKind =
            switch incident.kind {
            case .failedOver: .databaseFailedOver
            case .clusterReplaced: .databaseReplaced
            case .tablesLost: .databaseTablesLost
            case .rowsLost: .databaseRowsLost
            }
        raise(Alarm(kind: kind, clientID: "", text: incident.text), repeats: incident.kind != .rowsLost)
    }

    /// Raises an alarm because the key ring does not fit the database; the alarm repeats every hour until it does.
    package func reportKeyRingProblem(_ kind: AlarmKind, _ text: String) {
        raise(Alarm(kind: kind, clientID: "", text: text))
    }

    /// Raises an alarm because a certificate must be renewed.
    package func reportCertificateProblem(_ kind: AlarmKind, _ text: String) {
        raise(Alarm(kind: kind, clientID: "", text: text))
    }

    /// The alarms whose cause was seen in the last hour and has not ended, in the order of their kinds.
    package var currentAlarms: [CurrentAlarm] {
        let now = time.sinceBoot
        let current = state.withLock { state in
            state.current = state.current.filter { now - $0.value.lastSeen < Self.alarmPause }
            return state.current.values.map(\.alarm)
        }
        return current.sorted { ($0.kind.rawValue, $0.client) < ($1.kind.rawValue, $1.client) }
    }

    func hold(of client: String, isHeld: Bool) {
        guard isHeld else { return end([.databaseCopySuspected], client: client) }
        raise(
            Alarm(
                kind: .databaseCopySuspected,
                clientID: client,
                text: """
                    Google has refused the first \(FirstAnswers.maximumGrants) grants since the start and accepted none: are other \
                    workers using a copy of this database, or is it an old backup? Only one grant in five minutes is tried until \
                    one succeeds; see docs/runbook.md
                    """
            )
        )
    }

    /// Records that the causes of alarms are over.
    package func end(_ kinds: [AlarmKind], client: String = "") {
        state.withLock { state in
            for kind in kinds {
                let key = AlarmKey(kind: kind, client: client)
                if state.current.removeValue(forKey: key) != nil { state.ended.insert(key) }
            }
        }
    }

    /// Raises an alarm for a kind and client, at most once an hour, or once in five minutes if it has ended in between;
    /// each time if it `repeats`.
    private func raise(_ alarm: Alarm, repeats: Bool = false) {
        let key = AlarmKey(kind: alarm.kind, client: alarm.clientID)
        let now = time.sinceBoot
        let wallClock = time.now
        let count: Int? = state.withLock { state in
            let pause = state.ended.contains(key) ? Self.renewalPause : Self.alarmPause
            state.see(key, alarm, at: now, wallClock: wallClock)
            if !repeats, let last = state.lastRaised[key], now - last < pause {
                state.suppressed[key, default: 0] += 1
                return nil
            }
            state.lastRaised[key] = now
            state.ended.remove(key)
            return 1 + (state.suppressed.removeValue(forKey: key) ?? 0)
        }
        guard let count else { return }
        counters.lifetime.recordAlarm(alarm.kind)
        let client = alarm.clientID.isEmpty ? nil : alarm.clientID
        metrics.record(.alarm(kind: alarm.kind.rawValue, text: alarm.text, count: count, client: client))
        diagnostics.error("alarm", ["kind": alarm.kind.rawValue, "client": alarm.clientID, "text": alarm.text])
    }
}

extension EngineLog.State {
    fileprivate mutating func see(
        _ key: EngineLog.AlarmKey,
        _ alarm: Alarm,
        at now: BootInstant,
        wallClock: Timestamp
    ) {
        let former = current[key].flatMap { now - $0.lastSeen < EngineLog.alarmPause ? $0.alarm : nil }
        let entry = CurrentAlarm(
            kind: alarm.kind,
            client: alarm.clientID,
            text: alarm.text,
            since: former?.since ?? wallClock,
            until: wallClock + EngineLog.alarmPause,
            count: (former?.count ?? 0) + 1
        )
        current[key] = (entry, now)
    }
}
