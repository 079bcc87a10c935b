import Base
import Crypto
import Scheduler
import Status
import Storage
import Worker

/// Everything that `status` prints, as of one instant.
struct StatusReport: Equatable, Sendable {
    /// The state of one client id.
    struct Client: Equatable, Sendable {
        enum BreakerState: String, Sendable {
            case closed
            case open
            case probing
        }

        var id: String
        var breaker: BreakerState
        /// The reason why requests stopped, while the breaker is not closed.
        var breakerReason: String?
        /// The time since which the breaker is not closed.
        var breakerSince: Timestamp?
        var nextProbe: Duration?
        /// The number of requests per second that are allowed now.
        var ceiling: Double
        var isSlowed: Bool
        /// The remaining time of a pause that the endpoint asked for.
        var pause: Duration?
        var isWave: Bool
        /// The time of the last successful refresh.
        var lastSuccessAt: Timestamp?
    }

    struct Database: Equatable, Sendable {
        var path: String
        var bytes: Int64
        /// The version of its tables; `nil` if the file could not be read.
        var schema: Int?
        /// The free bytes on the disk of the file; `nil` for a server.
        var freeSpace: Int64?
        /// The version of the SQLite library, if it has the WAL-reset bug and the database is a file.
        var faultyLibrary: String?
    }

    var at: Timestamp
    var statistics: GrantStatistics
    /// The clients, ordered by id.
    var clients: [Client]
    /// The client ids with grants that are refreshed.
    var clientsInUse: Set<String>?
    var workers: [WorkerReport]
    /// The time of the last `--run-once`.
    var lastPassAt: Timestamp?
    var keysInUse: [KeyID: Int]
    /// `nil` if the key ring cannot be read.
    var keyRing: KeyRingSummary?
    var database: Database
    /// The spill files; `nil` if the folder cannot be read.
    var spilledFiles: [SpilledFile]? = []
    /// `nil` if notices are not configured.
    var pendingNotices: PendingNotices?
    /// `nil` without the public listener, which receives them.
    var securityEvents: ReceivedSecurityEvents?
    /// The facts that only a running worker knows about itself; empty in the command.
    var process = ProcessObservations()
}

extension StatusReport.Client {
    init(id: String, health: ClientHealth, maxRate: Double, at now: BootInstant, wallClock: Timestamp) {
        self.id = id
        breaker =
            switch health.breaker.state {
            case .closed: .closed
            case .open: .open
            case .probing: .probing
            }
        nextProbe =
            switch health.breaker.permits(at: now) {
            case .all: nil
            case .probeDue: .zero
            case .wait(let next): next - now
            }
        breakerReason =
            switch health.breaker.reason {
            case .clientFault(let code): code
            case .endpointFailing: "endpoint_failing"
            case nil: nil
            }
        var pacer = Pacer(maxRate: maxRate)
        pacer.limits = health.limits
        ceiling = pacer.ceiling(at: now)
        isSlowed = ceiling < maxRate
        pause = pacer.isPaused(at: now) ? pacer.limits.pausedUntil.map { $0 - now } : nil
        isWave = health.level(at: wallClock) == .wave
        lastSuccessAt = health.provenSuccessAt
        breakerSince =
            switch health.breaker.state {
            case .closed: nil
            case .open(_, let since, _, _), .probing(_, let since, _, _): wallClock - (now - since)
            }
    }
}

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
