import Base
import Status
import Storage
import Worker

/// The judgement of a report.
extension StatusReport {
    var judgement: Judgement { Judgement(observations) }

    /// The time that the oldest due grant has waited.
    var lateness: Duration? {
        statistics.oldestDueAt.map { max(.zero, at - $0) }
    }

    var observations: Observations {
        var observed = Observations(at: at, grants: statistics)
        observed.clients = observedClients
        observed.clientsInUse = clientsInUse
        observed.workers = workers
        observed.lastPassAt = lastPassAt
        observed.keyRing =
            keyRing.map { ring in
                .readable(
                    sealingKey: ring.sealingKeyID,
                    pending: ring.firstPending,
                    missing: Dictionary(
                        uniqueKeysWithValues: ring.missingKeys(of: keysInUse).map { ($0, keysInUse[$0] ?? 0) }
                    )
                )
            } ?? .unreadable
        observed.canListSpilledFiles = spilledFiles != nil
        observed.spilledFiles = (spilledFiles ?? []).map { file in
            Observations.SpilledFile(text: file.sentence(at: at), since: file.writtenAt, count: file.results ?? 0)
        }
        observed.notices = pendingNotices
        observed.securityEvents = securityEvents
        observed.faultySQLite = database.faultyLibrary
        observed.freeSpace = database.freeSpace
        observed.process = process
        return observed
    }

    /// The clients of the report, and those that have only expired grants.
    private var observedClients: [Observations.Client] {
        let known = Set(clients.map(\.id))
        let others = statistics.expired.clients.keys.filter { !known.contains($0) }.sorted()
        return clients.map(\.observed) + others.map { Observations.Client(id: $0, name: "\(DisplayedText($0))") }
    }
}

extension StatusReport.Client {
    fileprivate var observed: Observations.Client {
        var client = Observations.Client(id: id, name: "\(DisplayedText(id))")
        client.breaker = breaker.rawValue
        client.ceiling = ceiling
        client.breakerReason = breaker == .closed ? nil : breakerReason ?? "unknown"
        client.breakerSince = breakerSince
        client.isWave = isWave
        client.pause = pause
        client.isSlowed = isSlowed
        client.lastSuccessAt = lastSuccessAt
        return client
    }
}
