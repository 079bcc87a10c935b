import Base
import Storage

/// Decides when this worker can claim grants whose earlier claim has ended without a result.
///
/// After an outage of the store the other workers can still hold answers in memory, but could not renew their leases.
/// They get the duration of a lease to store what they hold, or to renew.
struct TakeoverPause: Sendable {
    private let silence: Duration
    private var lastContact: BootInstant
    private var end: BootInstant

    /// Creates it for a worker that has just reached the store.
    ///
    /// An outage is a time without contact that is longer than `silence`.
    init(after silence: Duration, at instant: BootInstant) {
        self.silence = silence
        lastContact = instant
        end = instant
    }

    /// The store has responded.
    mutating func reached(at instant: BootInstant) {
        if isOutage(at: instant) { end = instant + Lease.span }
        lastContact = instant
    }

    /// The process has waited for the store since this instant, before there was an engine.
    mutating func waited(since instant: BootInstant) {
        lastContact = min(lastContact, instant)
    }

    func isOver(at instant: BootInstant) -> Bool { instant >= end && !isOutage(at: instant) }

    private func isOutage(at instant: BootInstant) -> Bool { instant - lastContact > silence }
}
