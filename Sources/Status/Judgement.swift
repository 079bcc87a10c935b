import Base
import Crypto
import Storage
package import Telemetry

/// The concerns that follow from observations: one judgement for `status`, `/readyz`, the metrics and `doctor`.
package struct Judgement: Equatable, Sendable {
    /// A grant that is due for longer is late: scan, back-off and pace normally keep it well below.
    fileprivate static let tolerableLateness: Duration = .seconds(60)
    /// The same limit between two passes of `--run-once`, which cron might start every few minutes.
    fileprivate static let tolerablePassInterval: Duration = .seconds(600)
    /// The free space below which a person should free some.
    package static let nearlyFull: Int64 = 256 << 20

    /// Two lifetimes of an access token: a client id that works has a success in this time.
    private static let twoPeriods: Duration = .seconds(2 * 3600)
    /// More than a tenth of the connected grants, and at least three: a few users' trouble is usual.
    private static let tolerableRetrying = (share: 0.1, count: 3)
    /// As many grants as a wave has at least: one or two may be users who left.
    private static let fewestInDoubt = 3
    private static let tolerableNoticeAge: Duration = .seconds(3600)
    package static let tolerableStoringDelay: Duration = .seconds(5)
    /// Google sends a verification event on request, which `google-events verify` makes; a weekly one is advised.
    private static let tolerableSilence: Duration = .seconds(30 * 86_400)

    package let concerns: [Concern]

    package init(_ observed: Observations) {
        let concerns =
            Self.database(observed) + Self.workers(observed) + observed.clients.flatMap { Self.client($0, observed) }
            + Self.keys(observed) + Self.grants(observed) + Self.deliveries(observed) + Self.machine(observed)
        self.concerns = concerns + Self.alarms(observed, besides: concerns)
    }

    /// `true` if no concern changes the verdict.
    package var isWell: Bool { concerns.allSatisfy(\.isAdvisory) }

    /// The word for programs.
    package var verdict: String { isWell ? "ok" : "attention" }

    /// The number of concerns of a condition.
    package func count(of condition: Condition) -> Int { concerns.count { $0.kind == condition.rawValue } }

    private static func database(_ observed: Observations) -> [Concern] {
        var concerns: [Concern] = []
        let process = observed.process
        if let problem = process.databaseProblem {
            concerns.append(Concern(.databaseUnusable, "the worker cannot use the database: \(problem)"))
        }
        if let waiting = process.resultsWaiting, waiting > tolerableStoringDelay {
            let text = "results could not be stored for \(waiting.inTwoUnits), and wait in memory"
            concerns.append(Concern(.resultsWaiting, text, since: observed.at - waiting))
        }
        return concerns
    }

    private static func workers(_ observed: Observations) -> [Concern] {
        guard let workers = observed.workers else { return [] }
        var concerns: [Concern] = []
        let waited = observed.grants.oldestDueAt.map { observed.at - $0 }
        let isMissing = workers.isEmpty && !observed.process.isWorker
        if isMissing, !observed.isRefreshedByPasses || waited ?? .zero > tolerablePassInterval {
            let lastPass = observed.lastPassAt.map { ", and the last pass began \((observed.at - $0).inTwoUnits) ago" }
            let oldest = waited.map { ", the oldest for \($0.inTwoUnits)" }
            let text =
                "no worker is running\(lastPass ?? ""); grants due: \(observed.grants.due)\(oldest ?? ""): start it"
            concerns.append(Concern(.noWorker, text, since: observed.grants.oldestDueAt, count: observed.grants.due))
        }
        let sealing = Set(workers.map(\.sealingKeyID) + observed.sealingKey)
        for worker in workers {
            let lacking = sealing.filter { !worker.keyIDs.contains($0) }.sorted()
            guard !lacking.isEmpty else { continue }
            let keys = lacking.map(\.description).joined(separator: ", ")
            let text = "worker \(worker.id) lacks key \(keys), which seals: give it the key ring of the others"
            concerns.append(Concern(.workerLacksKey, text, count: lacking.count))
        }
        return concerns
    }

    /// `true` if `invalid_grant` of this client is doubted: a wave may be over while its grants still wait for their
    /// confirmation.
    fileprivate static func isDoubted(_ client: Observations.Client, _ observed: Observations) -> Bool {
        client.isWave || (observed.grants.inDoubt[client.id] ?? 0) >= fewestInDoubt
    }

    private static func client(_ client: Observations.Client, _ observed: Observations) -> [Concern] {
        var concerns: [Concern] = []
        let name = client.name
        if let reason = client.breakerReason {
            let text = "nothing is sent for client \(name): \(reason)"
            concerns.append(Concern(.breakerOpen, text, since: client.breakerSince, client: client.id))
        }
        if isDoubted(client, observed) {
            let inDoubt = observed.grants.inDoubt[client.id] ?? 0
            let text =
                "a wave of invalid_grant for client \(name): each is confirmed before it is acted on; grants in doubt: \(inDoubt)"
            concerns.append(Concern(.invalidGrantWave, text, count: max(1, inDoubt), client: client.id))
        }
        if let pause = client.pause {
            let text = "the endpoint asked client \(name) to pause for \(pause.inTwoUnits) more"
            concerns.append(Concern(.clientPaused, text, client: client.id))
        } else if client.isSlowed {
            let text = "the endpoint throttled client \(name), which recovers by itself"
            concerns.append(Concern(.clientSlowed, text, client: client.id))
        }
        return concerns
    }

    private static func keys(_ observed: Observations) -> [Concern] {
        switch observed.keyRing {
        case nil: return []
        case .unreadable:
            return [Concern(.keyRingUnreadable, "the key ring cannot be read: run: refresh-worker doctor")]
        case .readable(_, let pending, let missing):
            var concerns = missing.sorted { $0.key < $1.key }.map { id, tokens in
                let count = tokens == 1 ? "1 token" : "\(tokens) tokens"
                let text = "\(count) sealed with key \(id), which the ring lacks, cannot be opened"
                return Concern(.keysMissing, text, count: tokens)
            }
            if let pending {
                let text = "the rotation to key \(pending) is not finished: run: refresh-worker keys rotate"
                concerns.append(Concern(.rotationUnfinished, text))
            }
            return concerns
        }
    }

    private static func grants(_ observed: Observations) -> [Concern] {
        var concerns: [Concern] = []
        let grants = observed.grants
        let limit = observed.tolerableLateness
        if let oldest = grants.expired.oldest, observed.at - oldest > limit {
            let count = grants.expired.count
            let age = (observed.at - oldest).inTwoUnits
            let text = "connected grants without a valid access token: \(count), the oldest for \(age)"
            concerns.append(Concern(.grantsExpired, text, since: oldest, count: count))
        }
        concerns += clientsWithoutSuccess(observed)
        let retrying = grants.byState[.retrying] ?? 0
        let share = Double(retrying) / Double(max(1, grants.connected))
        if retrying >= tolerableRetrying.count, share > tolerableRetrying.share {
            let percent = Int((share * 100).rounded(.down))
            let text = "\(retrying) of \(grants.connected) connected grants (\(percent) %) wait for another try"
            concerns.append(Concern(.manyRetrying, text, count: retrying))
        }
        if observed.workers?.isEmpty != true, let due = grants.oldestDueAt, observed.at - due > limit {
            let text = "the oldest due grant has waited \((observed.at - due).inTwoUnits)"
            concerns.append(Concern(.grantsOverdue, text, since: due, count: grants.due))
        }
        if grants.refreshTokensEnding > 0 {
            let text = "refresh tokens that end within three days: \(grants.refreshTokensEnding)"
            concerns.append(Concern(.refreshTokensEnding, text, count: grants.refreshTokensEnding))
        }
        if grants.idle > 0 {
            let text =
                "connected grants without a refresh for five months, which Google forgets at six: \(grants.idle)"
            concerns.append(Concern(.grantsIdle, text, count: grants.idle))
        }
        return concerns
    }

    private static func clientsWithoutSuccess(_ observed: Observations) -> [Concern] {
        observed.clients.compactMap { client in
            guard let expired = observed.grants.expired.clients[client.id] else { return nil }
            let success = client.lastSuccessAt
            let since = success ?? expired.oldest
            guard observed.at - expired.oldest > observed.tolerableLateness, observed.at - since > twoPeriods else {
                return nil
            }
            let last = success.map { "for \((observed.at - $0).inTwoUnits)" } ?? "so far"
            let text =
                "no refresh of client \(client.name) succeeded \(last), although its grants were due: is the client id right?"
            return Concern(.clientWithoutSuccess, text, since: since, count: expired.count, client: client.id)
        }
    }

    private static func deliveries(_ observed: Observations) -> [Concern] {
        var concerns: [Concern] = []
        if !observed.canListSpilledFiles {
            concerns.append(Concern(.resultsSpilled, "it is unknown if results wait in files: they cannot be listed"))
        }
        for file in observed.spilledFiles {
            concerns.append(Concern(.resultsSpilled, file.text, since: file.since, count: file.count))
        }
        if let notices = observed.notices, let oldest = notices.oldest, observed.at - oldest > tolerableNoticeAge {
            let age = (observed.at - oldest).inTwoUnits
            let text = "the backend has not accepted a notice for \(age): see the event notice in the metrics log"
            concerns.append(Concern(.noticesStuck, text, since: oldest, count: notices.count))
        }
        if let events = observed.securityEvents {
            if let last = events.lastAt {
                if observed.at - last > tolerableSilence {
                    let text =
                        "no security event came for \((observed.at - last).inTwoUnits): run: refresh-worker google-events verify"
                    concerns.append(Concern(.securityEventsSilent, text, since: last))
                }
            } else {
                let text =
                    "no security event was ever received: if you use them, run: refresh-worker google-events verify"
                concerns.append(Concern(.securityEventsUnverified, text))
            }
        }
        return concerns
    }

    private static func machine(_ observed: Observations) -> [Concern] {
        var concerns: [Concern] = []
        if observed.process.isMetricsLogFailing {
            let text = "the metrics log cannot be written; lines lost so far: \(observed.process.droppedLines)"
            concerns.append(Concern(.metricsLogFailing, text, count: observed.process.droppedLines))
        }
        if let free = observed.freeSpace, free < nearlyFull {
            let text = "only \(free >> 20) MiB are free on the database's disk"
            concerns.append(Concern(.diskNearlyFull, text))
        }
        if let version = observed.faultySQLite {
            let text =
                "SQLite \(version) has the WAL-reset bug: this program avoids it; let no other program write to the database"
            concerns.append(Concern(.sqliteLogResetBug, text))
        }
        return concerns
    }

    private static func alarms(_ observed: Observations, besides concerns: [Concern]) -> [Concern] {
        observed.process.alarms.filter { alarm in
            !observed.hasEnded(alarm)
                && !concerns.contains { concern in
                    let covered = Condition(rawValue: concern.kind)?.covers ?? []
                    return covered.contains(alarm.kind.rawValue) && (concern.client ?? alarm.client) == alarm.client
                }
        }.map { Concern($0) }
    }
}

extension Observations {
    /// `true` if the stored state shows that the cause is over: the process that raised the alarm might not know, or
    /// might have ended.
    package func hasEnded(_ alarm: CurrentAlarm) -> Bool {
        // The last grant of this client id has ended, or has moved to another one.
        if !alarm.client.isEmpty, clientsInUse?.contains(alarm.client) == false { return true }
        guard let client = clients.first(where: { $0.id == alarm.client }) else { return false }
        switch alarm.kind {
        case .clientFault, .endpointFailing: return client.breakerReason == nil
        case .grantsInDoubt: return !Judgement.isDoubted(client, self)
        default: return false
        }
    }

    fileprivate var sealingKey: [KeyID] {
        guard case .readable(let key, _, _) = keyRing else { return [] }
        return [key]
    }

    /// `true` if a timer runs `--run-once`: then no worker is alive between two passes.
    fileprivate var isRefreshedByPasses: Bool {
        // A pass in the future was recorded before the clock was set back.
        let limit = Judgement.tolerablePassInterval
        return lastPassAt.map { at - $0 <= limit && $0 - at <= limit } ?? false
    }

    /// The lateness that is usual, with a worker or between two passes of cron.
    fileprivate var tolerableLateness: Duration {
        workers?.isEmpty == true ? Judgement.tolerablePassInterval : Judgement.tolerableLateness
    }
}
