import Clocks
import Scheduler
import Store

/// What one process knows of one client id: its share of the pace, and the health that all workers share.
struct ClientGate {
    var pacer: Pacer
    var health: ClientHealth
    /// Grants of this client that are due and wait for their turn, the longest due first.
    var queue: [GrantID] = []
    /// Since when the queue has not been empty.
    var waitingSince: BootInstant?
    /// How far this client's part of the due index has been read; `nil` where the window's end was reached.
    var cursor: DueEntry?
    /// Whether this process is asking the store for the probe.
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
