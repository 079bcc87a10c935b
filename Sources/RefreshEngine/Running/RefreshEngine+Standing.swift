import Scheduler

/// The condition of one client id at Google, as far as this worker knows.
package struct ClientStatus: Hashable, Sendable {
    package enum Breaker: String, Sendable {
        case closed, open, probing
    }

    package var clientID: String
    package var breaker: Breaker
    /// The requests per second that are allowed now.
    package var ceiling: Double
}

extension RefreshEngine {
    /// The client ids that this worker has seen, sorted by name.
    package var clientStandings: [ClientStatus] {
        let instant = sharedNow
        return gates.sorted { $0.key < $1.key }.map { client, gate in
            let breaker: ClientStatus.Breaker =
                switch gate.health.breaker.state {
                case .closed: .closed
                case .open: .open
                case .probing: .probing
                }
            return ClientStatus(clientID: client, breaker: breaker, ceiling: gate.pacer.ceiling(at: instant))
        }
    }
}
