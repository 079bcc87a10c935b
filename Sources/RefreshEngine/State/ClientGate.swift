import Clocks
import Scheduler
import Store

/// The limits of one client id in this process, its health as last read, and the queue of its due grants.
struct ClientGate: Sendable {
    var pacer: Pacer
    private(set) var health: ClientHealth
    /// The due grants of this client that wait for the breaker and the pacer, the longest overdue first.
    private(set) var queue: [GrantID] = []
    /// The instant since which the queue has not been empty.
    private(set) var waitingSince: BootInstant?
    /// The position up to which this client's part of the due index has been read; `nil` once all of it
    /// that falls due soon was read.
    var cursor: DueEntry?

    init(maxRate: Double, workerCount: Int, health: ClientHealth) {
        pacer = Pacer(maxRate: maxRate)
        pacer.workerCount = workerCount
        pacer.limits = health.limits
        self.health = health
    }

    mutating func update(_ health: ClientHealth) {
        self.health = health
        pacer.limits = health.limits
    }

    mutating func append(_ id: GrantID, at instant: BootInstant) {
        if queue.isEmpty { waitingSince = instant }
        queue.append(id)
    }

    /// Removes and returns the first grants of the queue.
    mutating func take(atMost count: Int, at instant: BootInstant) -> [GrantID] {
        let taken = Array(queue.prefix(count))
        queue.removeFirst(taken.count)
        waitingSince = queue.isEmpty ? nil : instant
        return taken
    }
}
