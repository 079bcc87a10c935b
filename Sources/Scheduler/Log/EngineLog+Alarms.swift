import Base
import Crypto
import GoogleOAuth
package import Storage
import Synchronization
package import Telemetry

/// The alarms: what is wrong now with a client id, the store or the spill file, raised once and ended with its cause.
extension EngineLog {
    /// The pause before an alarm of the same kind about the same client is raised again.
    static let alarmPause: Duration = .seconds(3600)
    /// The pause before an alarm that ended can be raised again.
    ///
    /// Short enough to report a new problem, long enough that one that comes and goes does not flood the log.
    private static let renewalPause: Duration = .seconds(300)

    struct AlarmKey: Hashable {
        var kind: AlarmKind
        var client: String
    }

    struct AlarmState {
        /// The alarm with the time at which its cause was last seen, or `nil` once it has ended.
        var current: (alarm: CurrentAlarm, lastSeen: BootInstant)?
        var lastRaised: BootInstant?
        /// The number of times that it was not raised since.
        var suppressed = 0
        /// `true` if it has ended since it was last raised.
        var hasEnded = false
    }

    func breaker(_ change: Breaker.Change, client: String) {
        switch change {
        case .opened(.clientFault(let code)):
            metrics.record(.breaker(client: client, "opened", reason: code))
            raise(.clientFault, Self.clientFaultText(code), client: client, repeats: true)
        case .opened(.endpointFailing):
            metrics.record(.breaker(client: client, "opened", reason: Breaker.Reason.endpointFailing.code))
            raise(
                .endpointFailing,
                "the token endpoint does not answer as it should; one grant at a time is tried until it does",
                client: client,
                repeats: true
            )
        case .closed:
            metrics.record(.breaker(client: client, "closed"))
            end([.clientFault, .endpointFailing], client: client)
            diagnostics.notice("the token endpoint works again for this client", ["client": client])
        }
    }

    private static func clientFaultText(_ code: String) -> String {
        guard code == RefreshFailure.appNotAuthentic.code else {
            return """
                the token endpoint refuses the client itself (\(code)): check the client id where it is registered \
                (for Google, the Cloud console); no grant was changed, and one at a time is tried until it works again
                """
        }
        return """
            Google cannot verify that requests come from the app (\(code)): perhaps App Check is enforced for this \
            client, in Google's or Firebase's console; no grant ends, and one at a time is tried until it works again; \
            see docs/runbook.md#google-verifies-the-app
            """
    }

    /// Ends the alarms that doubt a client id or its secret, for each client id with a success.
    func endAlarms(of refreshes: [Refresh]) {
        let doubts: [AlarmKind] = [.clientUnproven, .clientSecretsDiffer]
        let doubted = alarms.withLock { alarms in
            alarms.keys.filter { doubts.contains($0.kind) && alarms[$0]?.current != nil }.map(\.client)
        }
        guard !doubted.isEmpty else { return }
        let working = Set(refreshes.filter(\.isRefreshed).map(\.grant.clientID))
        for client in doubted where working.contains(client) { end(doubts, client: client) }
    }

    /// Logs an error of the store, of sealing, or of the spill file.
    package func reportStoreFailure(_ error: any Error, waiting: Int) {
        diagnostics.debug("store", ["error": "\(error)", "waiting": "\(waiting)"])
        let (kind, text): (AlarmKind, String) =
            switch error {
            case let error as StoreError where error.code == .moved: (.storeMoved, error.message)
            case let error as StoreError where error.code == .replaced: (.storeReplaced, error.message)
            case let error as CryptoError:
                (.sealingFailed, "answers cannot be sealed; they wait in memory until they can: \(error)")
            case let error as FileError: (.spillFailed, error.description)
            default: (.storeFailing, "the store cannot be used, results wait in memory until it can: \(error)")
            }
        raise(kind, text)
    }

    /// An incident that a store reports once, or missing rows, which are reported until they are back.
    package func incident(_ incident: StoreIncident) {
        if let kind = incident.alarm { return raise(kind, incident.text, repeats: kind != .databaseRowsLost) }
        if incident.kind == .fileSetAside {
            diagnostics.warning("a file was renamed", ["what": incident.text])
        } else if incident.kind == .changeWaits {
            diagnostics.warning(
                "the tables are used as they are: a change of this version is made at a later start",
                ["error": incident.text]
            )
        } else {
            diagnostics.warning(
                "the grants that are due for long could not be read; this is tried again",
                ["error": incident.text]
            )
        }
    }

    /// The alarms whose cause was seen lately and has not ended, in the order of their kinds.
    package var currentAlarms: [CurrentAlarm] {
        let now = time.sinceBoot
        let current = alarms.withLock { $0.values.compactMap { Self.alarm(in: $0, at: now) } }
        return current.sorted { ($0.kind.rawValue, $0.client) < ($1.kind.rawValue, $1.client) }
    }

    func suspectedCopy(of client: String, isSuspected: Bool) {
        guard isSuspected else { return end([.databaseCopySuspected], client: client) }
        raise(
            .databaseCopySuspected,
            """
            the token endpoint has refused the first \(CopySuspicion.maximumGrants) grants since the start and accepted \
            none: are other workers using a copy of this database, or is it an old backup? Only one grant in five minutes \
            is tried until one succeeds; see docs/runbook.md
            """,
            client: client
        )
    }

    /// Reports that this worker gets no answers while others do.
    func reachLost(code: String, worker: String) {
        raise(
            .endpointOutOfReach,
            """
            worker \(worker) gets no answer from the token endpoint (\(code)) while other workers do, so they refresh \
            its grants: check its network, DNS and proxy
            """
        )
    }

    /// Reports that this worker gets answers again.
    func reachRestored() {
        end([.endpointOutOfReach])
        diagnostics.notice("the token endpoint answers this worker again")
    }

    /// Records that the causes of alarms are over.
    package func end(_ kinds: [AlarmKind], client: String = "") {
        alarms.withLock { alarms in
            for kind in kinds {
                let key = AlarmKey(kind: kind, client: client)
                guard alarms[key]?.current != nil else { continue }
                alarms[key]?.current = nil
                alarms[key]?.hasEnded = true
            }
        }
    }

    /// Raises an alarm for a kind and client, at most once an hour, or once in five minutes if it has ended in between.
    ///
    /// An alarm that `repeats` is raised each time.
    package func raise(_ kind: AlarmKind, _ text: String, client: String = "", repeats: Bool = false) {
        let now = time.sinceBoot
        let wallClock = time.now
        let raised: (alarm: CurrentAlarm, count: Int)? = alarms.withLock { alarms in
            let key = AlarmKey(kind: kind, client: client)
            var state = alarms[key] ?? AlarmState()
            defer { alarms[key] = state }
            let former = Self.alarm(in: state, at: now)
            let current = CurrentAlarm(
                kind: kind,
                client: client,
                text: text,
                since: former?.since ?? wallClock,
                until: wallClock + kind.maximumAge,
                count: (former?.count ?? 0) + 1
            )
            state.current = (current, now)
            let pause = state.hasEnded ? Self.renewalPause : Self.alarmPause
            if !repeats, let last = state.lastRaised, now - last < pause {
                state.suppressed += 1
                return nil
            }
            let count = 1 + state.suppressed
            (state.lastRaised, state.suppressed, state.hasEnded) = (now, 0, false)
            return (current, count)
        }
        guard let raised else { return }
        counters.recordAlarm(kind)
        metrics.record(.alarm(raised.alarm, count: raised.count))
        diagnostics.error("alarm", ["kind": kind.rawValue, "client": client, "text": text])
    }

    private static func alarm(in state: AlarmState, at now: BootInstant) -> CurrentAlarm? {
        state.current.flatMap { now - $0.lastSeen < $0.alarm.kind.maximumAge ? $0.alarm : nil }
    }
}

extension MetricsEvent {
    /// A change of the breaker of one client id.
    static func breaker(client: String, _ change: String, reason: String = "") -> MetricsEvent {
        MetricsEvent("breaker") { line in
            line.text("client", client, "the client id")
            line.text(
                "change",
                change,
                "`opened` (requests stop), `probe` (one grant is tried), `closed` (requests go on)"
            )
            line.text("reason", reason, "the reason for opening")
        }
    }

    /// A change of the pace of one client id.
    static func pacer(client: String, ceiling: Double, paused: Duration, reason: String) -> MetricsEvent {
        MetricsEvent("pacer") { line in
            line.text("client", client, "the client id")
            line.fraction("ceiling", ceiling, "requests a second now allowed")
            line.milliseconds("paused_ms", paused, "without requests, from now; 0 for no pause")
            line.text("reason", reason, "the reason for the change")
        }
    }
}

extension StoreIncident {
    /// The alarm that it is, or `nil` if nobody has to act on it.
    package var alarm: AlarmKind? {
        switch kind {
        case .failedOver: .databaseFailedOver
        case .databaseReplaced: .databaseReplaced
        case .tablesLost: .databaseTablesLost
        case .rowsLost: .databaseRowsLost
        case .changeWaits, .lookFailed, .fileSetAside: nil
        }
    }
}
