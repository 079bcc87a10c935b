import Clocks
import Scheduler
import Store

/// The view that one process has of one client id: its share of the pace, and the health that all workers share.
struct ClientGate {
    var pacer: Pacer
    var health: ClientHealth
    /// The due grants of this client that wait for their turn, the longest overdue first.
    var queue: [GrantID] = []
    /// The instant since which the queue has not been empty.
    var waitingSince: BootInstant?
    /// The position up to which this client's part of the due index has been read; `nil` once the window's end was
    /// reached.
    var cursor: DueEntry?
    /// `true` while this process asks the store for the probe.
    var isAskingForProbe = false

    init(maxRate: Double, sharers: Int, health: ClientHealth) {
        pacer = Pacer(maxRate: maxRate)
        pacer.sharers = sharers
        pacer.limits = health.limits
        self.health = health
    }

    mutating func learn(_ health: ClientHealth) {
        self.health = health
        pacer.limits = health.limits
    }
}
