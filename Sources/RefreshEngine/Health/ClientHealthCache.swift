import Store

/// The health of the clients that one transaction touches, each read and written once.
struct ClientHealthCache {
    private let transaction: any StoreTransaction
    private var current: [String: ClientHealth] = [:]
    private var stored: [String: ClientHealth] = [:]

    init(transaction: any StoreTransaction) {
        self.transaction = transaction
    }

    mutating func health(of client: String) throws -> ClientHealth {
        if let health = current[client] { return health }
        let bytes = try transaction.clientHealth(client)
        let health = ClientHealth(stored: bytes, epoch: transaction.leaseTime.epoch)
        current[client] = health
        stored[client] = health
        return health
    }

    mutating func set(_ health: ClientHealth, of client: String) {
        current[client] = health
    }

    func save() throws {
        for (client, health) in current where stored[client] != health {
            try transaction.setClientHealth(health.stored, of: client)
        }
    }
}
