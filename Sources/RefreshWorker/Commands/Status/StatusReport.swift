import Clocks
import RefreshEngine
import Scheduler
import Secrets
import Store

/// Everything that `status` tells, as it stood at one instant.
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
        /// Why nothing is sent, while the breaker is not closed.
        var breakerReason: String?
        var nextProbe: Duration?
        /// Requests a second that are allowed now.
        var ceiling: Double
        var isSlowed: Bool
        /// How long the endpoint's own pause goes on.
        var pause: Duration?
        var isWave: Bool
    }

    struct Database: Equatable, Sendable {
        var path: String
        var bytes: Int64
        /// The version of its tables; `nil` when the file could not be asked.
        var schema: Int?
    }

    var at: Timestamp
    var census: Census
    /// In the order of their ids.
    var clients: [Client]
    var workers: [WorkerReport]
    var keysInUse: [KeyID: Int]
    /// `nil` when the key ring cannot be read.
    var roster: KeyRoster?
    var database: Database
    /// The files of results that the database has not stored.
    var spilledFiles: [SpilledFile] = []
}

extension StatusReport.Client {
    init(id: String, health: ClientHealth, maximumRate: Double, at now: BootInstant, wallClock: Timestamp) {
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
        var pacer = Pacer(maxRate: maximumRate)
        pacer.limits = health.limits
        ceiling = pacer.ceiling(at: now)
        isSlowed = ceiling < maximumRate
        pause = pacer.isPaused(at: now) ? pacer.limits.pausedUntil.map { $0 - now } : nil
        isWave = health.level(at: wallClock) == .wave
    }
}
