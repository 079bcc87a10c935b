private import Base

/// The end of the time that a call may take, by a clock that cannot be stepped.
///
/// It is the system's, even in tests: the thread that waits is woken by the system.
///
/// The server ends a statement at this time (``StatementBatch/addLimits(until:)``). The worker waits longer for the
/// response, by `grace`: on a busy machine the server's error arrives late, and the connection is lost if the worker
/// stops waiting before that.
struct CallDeadline: Sendable {
    /// The time that a response may take after the server's own limit has passed.
    static let grace: Duration = .seconds(5)

    private let end: BootInstant
    private let grace: Duration
    let timeout: Duration

    init(in timeout: Duration, grace: Duration = Self.grace) {
        end = SystemTime().sinceBoot + timeout
        self.timeout = timeout
        self.grace = grace
    }

    /// Returns the deadline for the next of `tries` hosts, which get equal parts of the remaining time.
    ///
    /// It has no grace: opening a connection sends no statement that the server ends.
    func part(of tries: Int) -> CallDeadline {
        CallDeadline(in: remaining / tries, grace: .zero)
    }

    var remaining: Duration { max(.zero, end - SystemTime().sinceBoot) }
    var isOver: Bool { remaining == .zero }

    /// The remaining time to receive a response.
    var remainingForResponse: Duration { max(.zero, end + grace - SystemTime().sinceBoot) }
    /// The longest time that a call waits for a response.
    var responseTimeout: Duration { timeout + grace }
}
