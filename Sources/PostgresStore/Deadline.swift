/// When a call's patience ends, by a clock that nobody can step.
struct Deadline: Sendable {
    private let end: ContinuousClock.Instant
    let patience: Duration

    init(in patience: Duration) {
        end = ContinuousClock.now + patience
        self.patience = patience
    }

    /// The deadline of one of several tries that share what is left.
    func part(of tries: Int) -> Deadline {
        tries > 1 ? Deadline(in: remaining / tries) : self
    }

    var remaining: Duration { max(.zero, end - ContinuousClock.now) }
    var isOver: Bool { remaining == .zero }
}
