import Base
import Storage

/// The health of the clients that one transaction touches, each read and written once.
struct ClientHealthCache {
    /// A type of its own: Swift copies a tuple of such values by calls of the runtime.
    struct Entry {
        let client: String
        let stored: ClientHealth
        var current: ClientHealth
        /// The consequences of plain refreshes that were added, until they are taken.
        var effect: ClientEffect?
    }

    let transaction: any StoreTransaction
    let now: Timestamp
    /// A batch has few clients, and most often one: a list is searched faster than a dictionary.
    private(set) var entries: [Entry] = []

    /// Returns a client's health, with all plain refreshes that were stored so far.
    mutating func health(of client: String) throws -> ClientHealth {
        if let index = index(of: client) { return entries[index].current }
        let time = transaction.leaseTime
        var health = ClientHealth(stored: try transaction.clientHealth(client), epoch: time.epoch)
        let stored = health
        let successes = try transaction.takeUncountedSuccesses(of: client)
        let effect = successes.isEmpty ? nil : health.add(successes, at: now, instant: time.instant)
        entries.append(Entry(client: client, stored: stored, current: health, effect: effect))
        return health
    }

    /// Replaces a client's health that was read before.
    mutating func set(_ health: ClientHealth, of client: String) {
        guard let index = index(of: client) else { return assertionFailure("a client's health was not read") }
        entries[index].current = health
    }

    /// Returns the consequences that the plain refreshes of a client had, once.
    mutating func takeEffect(of client: String) -> ClientEffect? {
        guard let index = index(of: client), let effect = entries[index].effect else { return nil }
        entries[index].effect = nil
        return effect
    }

    func save() throws {
        for entry in entries where entry.stored != entry.current {
            try transaction.setClientHealth(entry.current.stored, of: entry.client)
        }
    }

    private func index(of client: String) -> Int? {
        for index in entries.indices where entries[index].client == client { return index }
        return nil
    }
}
