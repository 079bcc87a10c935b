import Base
import Storage

/// The limits of one client id in this process, its health as last read, and the queue of its due grants.
struct ClientGate: Sendable {
    var pacer: Pacer
    private(set) var health: ClientHealth
    /// The due grants of this client that wait for the breaker and the pacer, the longest overdue first.
    private(set) var queue: [GrantID] = []
    /// The revocations that were claimed while too many were in flight, by their due time.
    var deferredRevocations = DeadlineHeap()
    private(set) var lastClaim: LastClaim?
    /// `nil` for a command, which refreshes what it is asked for.
    var copySuspicion: CopySuspicion?
    /// The position up to which this client's part of the due index has been read, or `nil` once all of it
    /// that falls due soon was read.
    var cursor: DueEntry?
    /// The instant at which a healthy grant was last refreshed early because of others that are refused.
    private var healthyGrantAskedAt: BootInstant?

    struct LastClaim {
        let at: BootInstant
        /// The round over the clients in which it was made.
        let round: UInt64
        /// `true` if it had as many grants as a claim can have: those that it had no room for do not wait again.
        let isFull: Bool
    }

    init(maxRate: Double, workerCount: Int, health: ClientHealth) {
        pacer = Pacer(maxRate: maxRate)
        pacer.workerCount = workerCount
        pacer.limits = health.limits
        self.health = health
    }

    /// `true` if the breaker is closed and the endpoint's last answer was not a failure, as far as this worker knows.
    var isBreakerIdle: Bool { !health.breaker.isOpen && !health.breaker.hasEndpointFailures }

    /// Returns `true`, once a minute, if a healthy grant can be refreshed early.
    mutating func takeHealthyGrantRefresh(at instant: BootInstant) -> Bool {
        if let healthyGrantAskedAt, instant - healthyGrantAskedAt < .seconds(60) { return false }
        healthyGrantAskedAt = instant
        return true
    }

    mutating func update(_ health: ClientHealth) {
        self.health = health
        pacer.limits = health.limits
    }

    mutating func append(_ id: GrantID) { queue.append(id) }

    /// Removes and returns all grants of the queue but the last one.
    mutating func dropAllButLast() -> [GrantID] {
        let dropped = Array(queue.dropLast())
        queue.removeFirst(dropped.count)
        return dropped
    }

    /// Removes and returns the first grants of the queue, for a claim.
    mutating func take(
        atMost count: Int,
        at instant: BootInstant,
        inRound round: UInt64,
        fullClaim: Int
    ) -> [GrantID] {
        let taken = Array(queue.prefix(count))
        queue.removeFirst(taken.count)
        lastClaim = LastClaim(at: instant, round: round, isFull: taken.count >= fullClaim)
        return taken
    }

    mutating func forgetLastClaim() { lastClaim = nil }

    /// Returns the rest of the pause after the last claim, which is over at once if that was full.
    func pause(_ span: Duration, at instant: BootInstant) -> Duration {
        guard let lastClaim, !lastClaim.isFull else { return .zero }
        return max(.zero, lastClaim.at + span - instant)
    }
}
