import Base

/// The pause between claims while the store fails: a call might wait for seconds before it fails.
struct ClaimBackOff: Sendable {
    private static let backOff = BackOff(first: .seconds(1), maximum: .seconds(5))

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

    /// Records a failure.
    ///
    /// `jitter` is a random number between 0 and 1.
    mutating func fail(at instant: BootInstant, jitter: Double) {
        failures += 1
        failingSince = failingSince ?? instant
        resumesAt = instant + Self.backOff.delay(failures: failures, remainingLife: nil, jitter: jitter)
    }

    /// Returns the time for which claims have failed, or `nil` if the last one succeeded, or was long ago: without
    /// another grant to claim, nothing is known.
    func failingFor(at instant: BootInstant) -> Duration? {
        guard let failingSince, instant - resumesAt < Self.memory else { return nil }
        return instant - failingSince
    }

    /// Returns the time until the next claim, or `nil` if one can go now.
    func pause(at instant: BootInstant) -> Duration? {
        guard failures > 0, resumesAt > instant else { return nil }
        return resumesAt - instant
    }
}
