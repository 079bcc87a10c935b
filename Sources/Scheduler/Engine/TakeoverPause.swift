import Base
import Storage

/// Decides when this worker can claim grants whose earlier claim has ended without a result.
///
/// After an outage of the store the other workers can still hold answers in memory, but could not renew their leases.
/// They get the duration of a lease to store what they hold, or to renew. Only a successful write shows that they can:
/// a server whose disk is full still answers reads.
struct TakeoverPause: Sendable {
    private let silence: Duration
    private var lastWrite: BootInstant
    private var end: BootInstant

    /// Creates it for a worker that has just written to the store.
    ///
    /// An outage is a time without a successful write that is longer than `silence`.
    init(after silence: Duration, at instant: BootInstant) {
        self.silence = silence
        lastWrite = instant
        end = instant
    }

    /// The store has accepted a write.
    mutating func written(at instant: BootInstant) {
        if isOutage(at: instant) { end = instant + Lease.span }
        lastWrite = instant
    }

    /// The process has waited for the store since this instant, before there was an engine.
    mutating func waited(since instant: BootInstant) { lastWrite = min(lastWrite, instant) }

    /// The worker joins others on a store that they share.
    ///
    /// It cannot know since when they can write again. Example: A holds answers, and the server stops being read-only.
    /// B starts a second later. A stores its answers 3 seconds after that, when it tries again.
    mutating func joined(at instant: BootInstant) { end = max(end, instant + Lease.span) }

    func isOver(at instant: BootInstant) -> Bool { instant >= end && !isOutage(at: instant) }

    private func isOutage(at instant: BootInstant) -> Bool { instant - lastWrite > silence }
}
