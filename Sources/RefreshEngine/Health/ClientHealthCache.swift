import Store

/// The health of the clients that one transaction touches, each read and written once.
struct ClientHealthCache {
    private let transaction: any StoreTransaction
    private var pages: [String: ClientHealth] = [:]
    private var stored: [String: ClientHealth] = [:]

    init(transaction: any StoreTransaction) {
        self.transaction = transaction
    }

    mutating func health(of client: String) throws -> ClientHealth {
        if let page = pages[client] { return page }
        let bytes = try transaction.clientHealth(client)
        let health = ClientHealth(stored: bytes, epoch: transaction.leaseTime.epoch)
        pages[client] = health
        stored[client] = health
        return health
    }

    mutating func set(_ health: ClientHealth, of client: String) {
        pages[client] = health
    }

    func save() throws {
        for (client, health) in pages where stored[client] != health {
            try transaction.setClientHealth(health.stored, of: client)
        }
    }
}
