import Base
import Storage

/// The gates of the clients, and the clock that all workers share.
extension RefreshEngineState {
    /// Returns the instant of the clock that all workers share.
    func sharedInstant(at instant: BootInstant) -> BootInstant { instant + sharedClock.ahead }

    mutating func updateSharedClock(_ reading: LeaseTime, at instant: BootInstant) {
        sharedClock = (reading.epoch, reading.instant - instant)
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

    /// The number of refreshes that may be in flight now.
    var maximumInFlight: Int { inFlightLimit.limit(at: configuration.maxRate / Double(share.count)) }

    mutating func addGate(of client: String) {
        guard gates[client] == nil else { return }
        gates[client] = ClientGate(
            maxRate: configuration.maxRate,
            workerCount: share.count,
            health: ClientHealth(epoch: sharedClock.epoch)
        )
        if daemonBeganAt != nil { gates[client]?.firstAnswers = FirstAnswers() }
    }

    /// `true` if the grant must wait because all first grants of its client were refused.
    ///
    /// A token that came after the start cannot be one of a copied database.
    func isHeld(_ grant: Grant, at instant: BootInstant) -> Bool {
        guard gates[grant.clientID]?.firstAnswers?.wait(at: instant) != nil, let daemonBeganAt else { return false }
        return grant.isProven && grant.lastSuccessAt.map { $0 < daemonBeganAt } ?? true
    }

    /// The client ids that this worker has seen and that have grants to refresh, sorted by name.
    func clientStatuses(at instant: BootInstant) -> [ClientStatus] {
        let shared = sharedInstant(at: instant)
        let used = gates.filter { clientsInUse?.contains($0.key) ?? true }
        return used.sorted { $0.key < $1.key }.map { client, gate in
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

/// The limits of one client id in this process, its health as last read, and the queue of its due grants.
struct ClientGate: Sendable {
    var pacer: Pacer
    private(set) var health: ClientHealth
    /// The due grants of this client that wait for the breaker and the pacer, the longest overdue first.
    private(set) var queue: [GrantID] = []
    /// The last claim: its instant, and its round over the clients.
    private(set) var lastClaim: (at: BootInstant, round: UInt64)?
    /// `nil` for a command, which refreshes what it is asked for.
    var firstAnswers: FirstAnswers?
    /// The position up to which this client's part of the due index has been read; `nil` once all of it
    /// that falls due soon was read.
    var cursor: DueEntry?
    /// The instant at which a healthy grant was last refreshed early because of others that are refused.
    private var witnessAskedAt: BootInstant?

    init(maxRate: Double, workerCount: Int, health: ClientHealth) {
        pacer = Pacer(maxRate: maxRate)
        pacer.workerCount = workerCount
        pacer.limits = health.limits
        self.health = health
    }

    /// `true` if the breaker is closed and the endpoint's last answer was not a failure, as far as this worker knows.
    var isBreakerIdle: Bool { !health.breaker.isOpen && !health.breaker.hasEndpointFailures }

    /// Returns `true`, once a minute, if a healthy grant can be refreshed early.
    mutating func mayAskWitness(at instant: BootInstant) -> Bool {
        guard witnessAskedAt.map({ instant - $0 >= .seconds(60) }) ?? true else { return false }
        witnessAskedAt = instant
        return true
    }

    mutating func update(_ health: ClientHealth) {
        self.health = health
        pacer.limits = health.limits
    }

    mutating func append(_ id: GrantID) {
        queue.append(id)
    }

    /// Removes and returns the first grants of the queue, for a claim.
    mutating func take(atMost count: Int, at instant: BootInstant, inRound round: UInt64) -> [GrantID] {
        let taken = Array(queue.prefix(count))
        queue.removeFirst(taken.count)
        lastClaim = (instant, round)
        return taken
    }

    /// Returns the rest of the pause after the last claim.
    func pause(_ span: Duration, at instant: BootInstant) -> Duration {
        guard let lastClaim else { return .zero }
        return max(.zero, lastClaim.at + span - instant)
    }
}
