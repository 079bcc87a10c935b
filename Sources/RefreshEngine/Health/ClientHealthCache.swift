import Clocks
import Store

/// The health of the clients that one transaction touches, each read and written once.
struct ClientHealthCache {
    private let transaction: any StoreTransaction
    private let now: Timestamp
    private var current: [String: ClientHealth] = [:]
    private var stored: [String: ClientHealth] = [:]
    private var effects: [String: ClientEffect] = [:]

    init(transaction: any StoreTransaction, at now: Timestamp) {
        self.transaction = transaction
        self.now = now
    }

    /// Returns a client's health, with all plain refreshes that were stored so far.
    mutating func health(of client: String) throws -> ClientHealth {
        if let health = current[client] { return health }
        let time = transaction.leaseTime
        var health = ClientHealth(stored: try transaction.clientHealth(client), epoch: time.epoch)
        stored[client] = health
        let successes = try transaction.takeUncountedSuccesses(of: client)
        if !successes.isEmpty { effects[client] = health.add(successes, at: now, time.instant) }
        current[client] = health
        return health
    }

    mutating func set(_ health: ClientHealth, of client: String) {
        current[client] = health
    }

    /// Returns the consequences that the plain refreshes of a client had, once.
    mutating func takeEffect(of client: String) -> ClientEffect {
        effects.removeValue(forKey: client) ?? ClientEffect()
    }

    func save() throws {
        for (client, health) in current where stored[client] != health {
            try transaction.setClientHealth(health.stored, of: client)
        }
    }
}
