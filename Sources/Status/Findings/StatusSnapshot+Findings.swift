import Base
import Crypto
import Scheduler
import Storage
package import Telemetry

/// What follows from a snapshot, the most urgent first: the same findings for `status`, `/readyz`, the metrics,
/// `doctor` and the status page.
///
/// `doctor` also shows what nobody has to act on. Here it would hold for months, and people would ignore the verdict.
extension StatusSnapshot {
    /// A grant that is due for longer is late: scan, back-off and pace normally keep it well below. A grant whose token
    /// has expired for less is refreshed when a service asks for it.
    static let tolerableLateness: Duration = .seconds(60)
    /// The same limit between two passes of `--run-once`, which cron might start every few minutes.
    package static let tolerablePassInterval: Duration = .seconds(600)
    /// A grant that is due for longer can be without a token.
    static let harmlessLateness = DuePolicy.margin
    /// The time after the last pass for which passes, and not a daemon, are expected to refresh.
    static let passesRemembered: Duration = .seconds(86_400)
    /// The free space below which a person should free some.
    package static let nearlyFull: Int64 = 256 << 20
    /// Two lifetimes of an access token: a client id that works has a success in this time.
    static let twoPeriods: Duration = .seconds(2 * 3600)
    /// The time after which it is not usual that so many grants have expired, as they have after an import.
    static let tolerableLatenessOfMany: Duration = .seconds(15)
    /// More than a tenth of the connected grants, and at least three: a few users' trouble is usual.
    static let tolerableShare = TolerableShare(share: 0.1, count: 3)
    /// Of a Cloud project in testing, a seventh of the refresh tokens ends within each day.
    static let tolerableEnding = TolerableShare(share: 0.2, count: 3)
    /// As many grants as a wave has at least: one or two can be users who left.
    static let fewestInDoubt = 3
    static let tolerableNoticeAge: Duration = .seconds(3600)
    /// Google sends a verification event on request, which `google-events verify` makes. A weekly one is advised.
    static let tolerableSilence: Duration = .seconds(30 * 86_400)
    /// Two nights: one backup can fail, and the timer waits for up to half an hour.
    static let tolerableBackupAge: Duration = .seconds(2 * 86_400)

    package var findings: [Finding] {
        if let movedTo {
            // What it says of grants and workers is of the time of the move.
            return [finding(.storeMoved, StoreError(moved: database, to: movedTo).message)] + spillFindings
        }
        let clients = allClients
        let found =
            processFindings + workerFindings + clients.flatMap(findings) + keyFindings + grantFindings(clients)
            + deliveryFindings + machineFindings + testingFindings + incidentFindings
        let alarms = process.alarms.filter { alarm in
            if hasEnded(alarm) { return false }
            // `testingFindings` says the same, if the grants were counted.
            if alarm.kind == .projectInTesting, areGrantsCounted { return false }
            return !found.contains { $0.repeats(alarm) || $0.covers(alarm) }
        }
        return (found + alarms.map { Finding($0) }).groupedByCause()
    }

    /// `true` if the stored state shows that the cause is over: the process that raised the alarm might not know, or
    /// might have ended.
    package func hasEnded(_ alarm: CurrentAlarm) -> Bool {
        let followsFromCounts: [AlarmKind] = [
            .projectInTesting, .grantsInDoubt, .grantRefused, .unknownAnswer, .proofRefused,
        ]
        if !areGrantsCounted, followsFromCounts.contains(alarm.kind) { return false }
        // Users of a project in testing lose their grants, and no refresh is due then.
        if alarm.kind == .projectInTesting { return grants.consentEnds[alarm.client]?.grantsInTesting ?? 0 == 0 }
        // The last grant of this client id has ended, or has moved to another one.
        if !alarm.client.isEmpty, clientsInUse?.contains(alarm.client) == false { return true }
        guard let client = allClients.first(where: { $0.id == alarm.client }) else { return false }
        switch alarm.kind {
        case .clientFault, .endpointFailing: return client.breakerReason == nil
        case .clientUnproven: return client.lastSuccessAt != nil
        case .grantsInDoubt: return !isDoubted(client)
        case .grantRefused: return grants.retryingReasons[.clientMismatchUnconfirmed, default: 0] == 0
        case .unknownAnswer, .proofRefused: return grants.byState[.retrying, default: 0] == 0
        default: return false
        }
    }

    /// Returns the time from an instant of the past to this snapshot, for people.
    private func age(_ since: Timestamp) -> String { (at - since).inTwoUnits }

    /// The lateness that is usual, with a worker or between two passes of cron.
    private var tolerableLateness: Duration {
        workers?.isEmpty == true ? Self.tolerablePassInterval : Self.tolerableLateness
    }

    /// The time for which access tokens can be expired before services notice.
    ///
    /// None if a service that asks gets an error, because nothing can be refreshed for it.
    private var tolerableExpiry: Duration {
        let isBetweenPasses = workers?.isEmpty == true
        if isBetweenPasses { return Self.tolerablePassInterval }
        let isDatabaseAtFault = process.databaseProblem != nil || !process.isStoring
        let isClientBlocked = allClients.contains { grants.expired.clients[$0.id] != nil && $0.isBlocked(at: at) }
        if isDatabaseAtFault || isClientBlocked { return .zero }
        let isMany = Self.tolerableShare.isExceeded(by: grants.expired.count, of: grants.connected)
        return isMany ? Self.tolerableLatenessOfMany : Self.tolerableLateness
    }

    private var processFindings: [Finding] {
        var found: [Finding] = []
        if let problem = process.databaseProblem {
            found.append(Finding(.databaseUnusable, "the worker cannot use the database: \(problem)"))
        }
        if let waiting = process.resultsWaiting, !process.isStoring {
            let text = "results could not be stored for \(waiting.inTwoUnits), and wait in memory"
            found.append(Finding(.resultsWaiting, text, since: at - waiting))
        }
        return found
    }

    private var workerFindings: [Finding] {
        guard let workers else { return [] }
        var found = workers.compactMap(keysLacking)
        if workers.isEmpty, !process.isWorker, !passesRefresh { found.append(noWorker) }
        return found
    }

    /// `true` if passes of `--run-once` refresh in time: the last one was not long ago, and nothing waits for longer.
    private var passesRefresh: Bool {
        let limit = Self.tolerablePassInterval
        // A pass in the future was recorded before the clock was set back.
        guard let lastPassAt, at - lastPassAt <= limit, lastPassAt - at <= limit else { return false }
        guard let oldestDueAt = grants.oldestDueAt else { return true }
        return at - oldestDueAt <= limit
    }

    private var noWorker: Finding {
        let lastPass = lastPassAt.map { ", and the last pass began \(age($0)) ago" } ?? ""
        let oldest = grants.oldestDueAt.map { ", the oldest for \(age($0))" } ?? ""
        let due = areGrantsCounted ? "\(grants.due)" : "not counted"
        return Finding(
            .noWorker,
            "no worker is running\(lastPass); grants due: \(due)\(oldest): start it",
            since: grants.oldestDueAt,
            count: grants.due,
            severity: lacksTokens ? .now : .soon
        )
    }

    /// `true` if somebody lacks tokens while no worker runs, or if that is unknown.
    ///
    /// Only a worker gives tokens to services. Where passes refresh, commands read the stored ones.
    private var lacksTokens: Bool {
        guard areGrantsCounted else { return true }
        guard let lastPassAt, at - lastPassAt <= Self.passesRemembered else { return grants.connected > 0 }
        return grants.expired.count > 0
    }

    private func keysLacking(_ worker: WorkerReport) -> Finding? {
        guard let workers else { return nil }
        var sealing = Set(workers.map(\.sealingKeyID))
        // The key file that this process reads might be a wrong one, whose key seals nothing.
        if let sealingKey, keysInUse[sealingKey, default: 0] > 0 { sealing.insert(sealingKey) }
        let lacking = sealing.filter { !worker.keyIDs.contains($0) }.sorted()
        guard !lacking.isEmpty else { return nil }
        let keys = lacking.map(\.description).joined(separator: ", ")
        let text = "worker \(worker.id) lacks key \(keys), which seals tokens: give it a key ring that holds every key"
        return Finding(.workerLacksKey, text, count: lacking.count)
    }

    /// `true` if the refusals of this client are doubted: a wave can be over while its grants still wait for their
    /// confirmation.
    private func isDoubted(_ client: ClientStatus) -> Bool {
        client.isWave || (grants.inDoubt[client.id] ?? 0) >= Self.fewestInDoubt
    }

    private func findings(of client: ClientStatus) -> [Finding] {
        var found: [Finding] = []
        func add(_ kind: Finding.Kind, _ text: String, since: Timestamp? = nil, count: Int = 1) {
            found.append(Finding(kind, text, since: since, count: count, client: client.id))
        }
        let name = DisplayedText(client.id)
        if let reason = client.breakerReason {
            let answer = client.obstacle(at: at) ?? reason
            add(.breakerOpen, "nothing is sent for client \(name): \(answer)", since: client.breakerSince)
        }
        if isDoubted(client) {
            let inDoubt = grants.inDoubt[client.id] ?? 0
            let text =
                "a wave of refusals for client \(name): each is confirmed before it is acted on; grants in doubt: \(inDoubt)"
            add(.invalidGrantWave, text, count: max(1, inDoubt))
        }
        if let pause = client.pause {
            let answer = client.answer(at: at).map { ", with \($0)" } ?? ""
            add(.clientPaused, "the endpoint asked client \(name) to pause for \(pause.inTwoUnits) more\(answer)")
        } else if client.isSlowed {
            add(.clientSlowed, "the endpoint throttled client \(name), which recovers by itself")
        }
        return found
    }

    private var keyFindings: [Finding] {
        guard !isKeyRingUnreadable else {
            return [Finding(.keyRingUnreadable, "the key ring cannot be read: run: refresh-worker doctor")]
        }
        var found = keyCounts.filter { $0.isInRing == false }.map { key in
            let count = key.tokens ?? 0
            let tokens = "\(count.counted("token")) of key \(key.id), which the key file lacks"
            let isInMemory = workers?.contains { $0.keyIDs.contains(key.id) } ?? false
            guard isInMemory else { return Finding(.keysMissing, "\(tokens), cannot be used", count: count) }
            let text = "\(tokens): a worker has the key in memory, so do not restart it before the file is right"
            return Finding(.keysMissing, text, count: count, severity: .soon)
        }
        if let pendingKey {
            let text = "the rotation to key \(pendingKey) is not finished: run: refresh-worker keys rotate"
            found.append(Finding(.rotationUnfinished, text))
        }
        return found
    }

    private func grantFindings(_ clients: [ClientStatus]) -> [Finding] {
        [grantsExpired(clients)].compactMap(\.self) + clients.compactMap(withoutSuccess)
            + [manyRetrying, grantsOverdue, refreshTokensEnding, grantsIdle].compactMap(\.self)
    }

    private func grantsExpired(_ clients: [ClientStatus]) -> Finding? {
        guard let oldest = grants.expired.oldest, at - oldest > tolerableExpiry else { return nil }
        let count = grants.expired.count
        let answers = clients.filter { grants.expired.clients[$0.id] != nil }.compactMap { $0.answer(at: at) }
        let answer = answers.first.map { "; the endpoint gives \($0)" } ?? ""
        let text = "connected grants without a valid access token: \(count), the oldest for \(age(oldest))\(answer)"
        let ids = grants.expired.clients.keys
        return Finding(.grantsExpired, text, since: oldest, count: count, client: ids.count == 1 ? ids.first : nil)
    }

    private func withoutSuccess(_ client: ClientStatus) -> Finding? {
        guard let expired = grants.expired.clients[client.id] else { return nil }
        let since = client.lastSuccessAt ?? expired.oldest
        guard at - expired.oldest > tolerableLateness, at - since > Self.twoPeriods else { return nil }
        let last = client.lastSuccessAt.map { "for \(age($0))" } ?? "so far"
        let text =
            "no refresh of client \(DisplayedText(client.id)) succeeded \(last), although its grants were due: is the client id right?"
        return Finding(.clientWithoutSuccess, text, since: since, count: expired.count, client: client.id)
    }

    private var manyRetrying: Finding? {
        let retrying = grants.byState[.retrying] ?? 0
        guard Self.tolerableShare.isExceeded(by: retrying, of: grants.connected) else { return nil }
        let share = Double(retrying) / Double(max(1, grants.connected))
        let percent = Int((share * 100).rounded(.down))
        let reasons = grants.retryingByReason.prefix(3).map { "\($0.count) \($0.reason)" }
        let list = reasons.isEmpty ? "" : ": " + reasons.joined(separator: ", ")
        let text = "\(retrying) of \(grants.connected) connected grants (\(percent) %) wait for another try\(list)"
        return Finding(.manyRetrying, text, count: retrying)
    }

    /// It has no start: each try of the oldest one would move it.
    private var grantsOverdue: Finding? {
        guard workers?.isEmpty != true, let due = grants.oldestDueAt, at - due > tolerableLateness else { return nil }
        return Finding(
            .grantsOverdue,
            "the oldest due grant has waited \(age(due))",
            count: grants.due,
            severity: at - due > Self.harmlessLateness ? .soon : .tomorrow
        )
    }

    private var refreshTokensEnding: Finding? {
        let (all, withinDay) = (grants.refreshTokensEnding, grants.refreshTokensEndingWithinDay)
        guard all > 0 else { return nil }
        return Finding(
            .refreshTokensEnding,
            "refresh tokens that end within three days: \(all), of them within a day: \(withinDay)",
            count: all,
            severity: Self.tolerableEnding.isExceeded(by: withinDay, of: grants.connected) ? .soon : .tomorrow
        )
    }

    private var grantsIdle: Finding? {
        guard grants.idle > 0 else { return nil }
        let text = "connected grants without a refresh for five months, which Google forgets at six: \(grants.idle)"
        return Finding(.grantsIdle, text, count: grants.idle)
    }

    private var spillFindings: [Finding] {
        guard let spilledFiles else {
            return [Finding(.resultsSpilled, "it is unknown if results wait in files: they cannot be listed")]
        }
        return spilledFiles.map { file in
            Finding(.resultsSpilled, file.sentence(at: at), since: file.writtenAt, count: file.results ?? 0)
        }
    }

    private var deliveryFindings: [Finding] {
        var found = spillFindings
        if let notices, let oldest = notices.oldest, at - oldest > Self.tolerableNoticeAge {
            let text =
                "the backend has not accepted a notice for \(age(oldest)): see the event notice in the metrics log"
            found.append(Finding(.noticesStuck, text, since: oldest, count: notices.count))
        }
        if receivesSecurityEvents, let last = lastSecurityEventAt, at - last > Self.tolerableSilence {
            let text = "no security event came for \(age(last)): run: \(Finding.requestSecurityEvent)"
            found.append(Finding(.securityEventsSilent, text, since: last))
        }
        return found
    }

    /// The same as the alarms of the workers, which a pass does not raise.
    private var testingFindings: [Finding] {
        grants.projectsInTesting.map { project in
            finding(.projectInTesting, project.text, client: project.client, count: project.count)
        }
    }

    /// The same as the alarms that a worker raises about the database.
    private var incidentFindings: [Finding] {
        incidents.compactMap { incident in incident.alarm.map { finding($0, incident.text) } }
    }

    /// Returns what an alarm of this kind says, although no process has raised it.
    private func finding(_ kind: AlarmKind, _ text: String, client: String = "", count: Int = 1) -> Finding {
        let alarm = CurrentAlarm(kind: kind, client: client, text: text, since: at, until: at, count: count)
        var finding = Finding(alarm)
        finding.since = nil
        return finding
    }

    private func finding(of transaction: OldestTransaction) -> Finding {
        let since = transaction.age.map { at - $0 }
        let span = since.map { age($0) } ?? "\(transaction.transactions) transactions"
        let holder = DisplayedText(transaction.holder)
        let text = "dead rows stay in the database for \(span) because of \(holder): end it, if nobody needs it"
        return Finding(.oldTransaction, text, since: since)
    }

    /// Says what is unknown, so that nobody takes it for zero.
    private var countFindings: [Finding] {
        guard !timedOutCounts.isEmpty else { return [] }
        let names = Count.allCases.filter(timedOutCounts.contains).map(\.rawValue).joined(separator: ", ")
        let text = "the database did not count in time: \(names)"
        guard areGrantsCounted else {
            return [Finding(.countsTimedOut, "\(text); it is unknown if grants are overdue or without a token")]
        }
        return [Finding(.countsTimedOut, text, severity: .tomorrow)]
    }

    private var machineFindings: [Finding] {
        var found: [Finding] = countFindings
        if process.isMetricsLogFailing {
            let text = "the metrics log cannot be written; lines lost so far: \(process.droppedLines)"
            found.append(Finding(.metricsLogFailing, text, count: process.droppedLines))
        }
        if let freeSpace, freeSpace < Self.nearlyFull {
            found.append(Finding(.diskNearlyFull, "only \(freeSpace.inMebibytes) are free on the database's disk"))
        }
        if let warning = deletionClock?.warning { found.append(Finding(.deletionsWait, warning)) }
        if let backups, at - (backups.lastAt ?? backups.isOnSince) > Self.tolerableBackupAge {
            let last = backups.lastAt.map { "the last backup was made \(age($0)) ago" } ?? "no backup was made"
            let text = "\(last) in \(backups.folder), although its timer is on"
            found.append(Finding(.backupOverdue, text, since: backups.lastAt))
        }
        if let oldestTransaction, oldestTransaction.isForgotten { found.append(finding(of: oldestTransaction)) }
        return found
    }
}

/// A part of the grants that is usual, and about which nobody is told.
struct TolerableShare {
    /// Of all connected grants.
    let share: Double
    /// Fewer are tolerable in every case.
    let count: Int

    func isExceeded(by part: Int, of connected: Int) -> Bool {
        part >= count && Double(part) > share * Double(connected)
    }
}

extension Finding {
    /// Returns `true` if this finding and the alarm are of one kind and about one client.
    fileprivate func repeats(_ alarm: CurrentAlarm) -> Bool {
        kind == alarm.kind.rawValue && (client ?? "") == alarm.client
    }

    /// Returns `true` if the alarm says nothing new beside this finding.
    fileprivate func covers(_ alarm: CurrentAlarm) -> Bool {
        let concernsClient = client == nil || client == alarm.client
        return concernsClient && Kind(rawValue: kind)?.covers.contains(alarm.kind) == true
    }
}
