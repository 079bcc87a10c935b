import Base
import Storage

/// The pause between claims while the store fails: a call may wait for seconds before it fails.
struct ClaimBackOff: Sendable {
    private static let backOff = BackOff(first: .seconds(1), longest: .seconds(5))

    /// Longer than the longest claim with its pause.
    private static let memory: Duration = .seconds(30)

    /// The number of claims that failed in a row.
    private(set) var failures = 0
    private var failingSince: BootInstant?
    private var resumesAt: BootInstant

    init(at instant: BootInstant) {
        resumesAt = instant
    }

    mutating func succeed() {
        failures = 0
        failingSince = nil
    }

    /// Records a failure; `unit` is a random number between 0 and 1.
    mutating func fail(at instant: BootInstant, unit: Double) {
        failures += 1
        failingSince = failingSince ?? instant
        resumesAt = instant + Self.backOff.delay(failures: failures, remainingLife: nil, unit: unit)
    }

    /// Returns the time for which claims have failed; `nil` if the last one succeeded, or was long ago: without another
    /// grant to claim, nothing is known.
    func failingFor(at instant: BootInstant) -> Duration? {
        guard let failingSince, instant - resumesAt < Self.memory else { return nil }
        return instant - failingSince
    }

    /// Returns the time until the next claim; `nil` if one may go now.
    func pause(at instant: BootInstant) -> Duration? {
        guard failures > 0, resumesAt > instant else { return nil }
        return resumesAt - instant
    }
}

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
