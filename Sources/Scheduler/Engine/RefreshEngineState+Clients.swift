import Base
import Storage

/// The gates of the clients, and the clock that all workers share.
extension RefreshEngineState {
    /// Returns the instant of the clock that all workers share.
    func sharedInstant(at instant: BootInstant) -> BootInstant { instant + sharedClock.ahead }

    mutating func updateSharedClock(_ reading: LeaseTime, at instant: BootInstant) {
        sharedClock = SharedClock(epoch: reading.epoch, ahead: reading.instant - instant)
    }

    /// Updates the health of all clients, as stored.
    mutating func updateHealth(_ stored: [String: [UInt8]]) {
        for (client, bytes) in stored { updateHealth(bytes, of: client) }
    }

    /// Updates the health of one client, as stored.
    mutating func updateHealth(_ stored: [UInt8]?, of client: String) {
        updateHealth(ClientHealth(stored: stored, epoch: sharedClock.epoch), of: client)
    }

    mutating func updateHealth(_ health: ClientHealth, of client: String) {
        addGate(of: client)
        gates[client]?.update(health)
    }

    /// Returns requests to a client's pacer that were taken and not sent.
    mutating func refund(_ count: Int, of client: String, takenAt instant: BootInstant) {
        guard count > 0 else { return }
        let instant = sharedInstant(at: instant)
        gates[client]?.pacer.refund(count, at: instant)
    }

    /// The number of refreshes that can be in flight now.
    var maximumInFlight: Int { inFlightLimit.limit(at: configuration.maxRate / Double(share.count)) }

    mutating func addGate(of client: String) {
        guard gates[client] == nil else { return }
        gates[client] = ClientGate(
            maxRate: configuration.maxRate,
            workerCount: share.count,
            health: ClientHealth(epoch: sharedClock.epoch)
        )
        if daemonBeganAt != nil { gates[client]?.copySuspicion = CopySuspicion() }
    }

    /// `true` if the grant must wait because all first grants of its client were refused.
    ///
    /// A token that came after the start cannot be one of a copied database.
    func waitsForFirstSuccess(_ grant: Grant) -> Bool {
        guard let first = gates[grant.clientID]?.copySuspicion, first.isStopped, let daemonBeganAt else {
            return false
        }
        guard grant.isProven else { return false }
        guard let lastSuccessAt = grant.lastSuccessAt else { return true }
        return lastSuccessAt < daemonBeganAt
    }

    /// The clients that this worker has seen and that have grants to refresh, sorted by id.
    func clientStatuses(at instant: BootInstant, wallClock: Timestamp) -> [ClientStatus] {
        let shared = sharedInstant(at: instant)
        let used = gates.filter { clientsInUse?.contains($0.key) ?? true }
        return used.sorted { $0.key < $1.key }.map { client, gate in
            ClientStatus(id: client, health: gate.health, pacer: gate.pacer, at: shared, wallClock: wallClock)
        }
    }
}
