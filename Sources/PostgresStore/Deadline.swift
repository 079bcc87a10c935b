/// The end of a call's patience, by a clock that cannot be stepped.
///
/// The server ends a statement at this time (``Batch/addLimits(until:)``). The worker waits longer for the answer, by `grace`: a
/// busy machine delivers the server's refusal late, and a connection is lost if the worker stops listening before that.
struct Deadline: Sendable {
    /// The time that an answer may take after the server's own limit has passed.
    static let grace: Duration = .seconds(5)

    private let end: ContinuousClock.Instant
    private let grace: Duration
    let patience: Duration

    init(in patience: Duration, grace: Duration = Self.grace) {
        end = ContinuousClock.now + patience
        self.patience = patience
        self.grace = grace
    }

    /// The deadline for one of several hosts that share the remaining time.
    ///
    /// It has no grace: opening a connection sends no statement that the server ends.
    func part(of tries: Int) -> Deadline {
        Deadline(in: remaining / tries, grace: .zero)
    }

    var remaining: Duration { max(.zero, end - ContinuousClock.now) }
    var isOver: Bool { remaining == .zero }

    /// The time that is left to receive an answer.
    var remainingForAnswer: Duration { max(.zero, end + grace - ContinuousClock.now) }
    /// The longest time that a call waits for an answer.
    var patienceForAnswer: Duration { patience + grace }
}
