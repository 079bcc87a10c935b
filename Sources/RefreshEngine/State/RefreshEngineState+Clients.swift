import Clocks
import Scheduler
import Store

/// The gates: the health that the store shares, and this worker's part of each client's pace.
extension RefreshEngineState {
    /// Returns the instant of the clock that all workers share.
    func sharedInstant(at instant: BootInstant) -> BootInstant { instant + sharedClock.ahead }

    mutating func learn(_ reading: LeaseTime, at instant: BootInstant) {
        sharedClock = (reading.epoch, reading.instant - instant)
    }

    /// Learns the health of all clients, as stored.
    mutating func learn(_ stored: [String: [UInt8]]) {
        for (client, bytes) in stored { learn(bytes, of: client) }
    }

    /// Learns the health of one client, as stored.
    mutating func learn(_ stored: [UInt8]?, of client: String) {
        learn(ClientHealth(stored: stored, epoch: sharedClock.epoch), of: client)
    }

    mutating func learn(_ health: ClientHealth, of client: String) {
        addGate(of: client)
        gates[client]?.learn(health)
    }

    /// Puts requests back into a client's pace that were taken and not sent.
    mutating func putBack(_ count: Int, of client: String, takenAt instant: BootInstant) {
        guard count > 0 else { return }
        let instant = sharedInstant(at: instant)
        gates[client]?.pacer.putBack(count, at: instant)
    }

    /// The number of requests that may be in flight now.
    var mostInFlight: Int { inFlightLimit.limit(at: configuration.maxRate / Double(share.count)) }

    mutating func addGate(of client: String) {
        guard gates[client] == nil else { return }
        gates[client] = ClientGate(
            maxRate: configuration.maxRate,
            workerCount: share.count,
            health: ClientHealth(epoch: sharedClock.epoch)
        )
    }

    /// The client ids that this worker has seen, sorted by name.
    func clientStatuses(at instant: BootInstant) -> [ClientStatus] {
        let shared = sharedInstant(at: instant)
        return gates.sorted { $0.key < $1.key }.map { client, gate in
            let breaker: ClientStatus.Breaker =
                switch gate.health.breaker.state {
                case .closed: .closed
                case .open: .open
                case .probing: .probing
                }
            return ClientStatus(clientID: client, breaker: breaker, ceiling: gate.pacer.ceiling(at: shared))
        }
    }
}
