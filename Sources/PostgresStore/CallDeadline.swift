private import Clocks

/// The end of a call's patience, by a clock that cannot be stepped.
///
/// It is the system's, even in tests: the thread that waits is woken by the system.
///
/// The server ends a statement at this time (``Batch/addLimits(until:)``). The worker waits longer for the response, by
/// `grace`: on a busy machine the server's refusal arrives late, and a connection is lost if the worker stops waiting
/// before that.
struct CallDeadline: Sendable {
    /// The time that a response may take after the server's own limit has passed.
    static let grace: Duration = .seconds(5)

    private let end: BootInstant
    private let grace: Duration
    let patience: Duration

    init(in patience: Duration, grace: Duration = Self.grace) {
        end = SystemTime().sinceBoot + patience
        self.patience = patience
        self.grace = grace
    }

    /// Returns the deadline for one of several hosts that share the remaining time.
    ///
    /// It has no grace: opening a connection sends no statement that the server ends.
    func part(of tries: Int) -> CallDeadline {
        CallDeadline(in: remaining / tries, grace: .zero)
    }

    var remaining: Duration { max(.zero, end - SystemTime().sinceBoot) }
    var isOver: Bool { remaining == .zero }

    /// The time that is left to receive a response.
    var remainingForAnswer: Duration { max(.zero, end + grace - SystemTime().sinceBoot) }
    /// The longest time that a call waits for a response.
    var patienceForAnswer: Duration { patience + grace }
}
