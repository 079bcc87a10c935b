import Base
import Storage

/// The first responses about the grants of one client since this worker has started.
///
/// A copy of the database, such as a promoted backup or a snapshot of its volume, looks like the database itself. A
/// worker on a copy sends refresh tokens that the workers on the other one have replaced, and a strict server then ends
/// these grants. The only sign is that proven grants get `invalid_grant` from the first one on. So a worker begins with
/// few requests, and stops the client if all of them are refused.
struct CopySuspicion: Sendable {
    /// The number of requests before the first success, and of refused grants that stop the client.
    static let maximumGrants = 10
    /// The interval at which one grant is tried while the client is stopped.
    static let retryInterval: Duration = .seconds(300)

    private var refused: Set<GrantID> = []
    /// The time of the next try, or `nil` unless the client is stopped.
    private var nextTry: BootInstant?
    private var hasSucceeded = false

    /// `true` while the client is stopped: one grant is tried from time to time.
    var isStopped: Bool { nextTry != nil }

    /// Returns the number of requests that can be in flight, or `nil` if any number can.
    func maximumInFlight(at instant: BootInstant) -> Int? {
        guard !hasSucceeded else { return nil }
        guard let nextTry else { return Self.maximumGrants - refused.count }
        return instant >= nextTry ? 1 : 0
    }

    /// Returns the time until the next try, or `nil` if a response must come first.
    func nextTry(after instant: BootInstant) -> Duration? {
        guard let nextTry, nextTry > instant else { return nil }
        return nextTry - instant
    }

    /// Records a success, and returns `true` if it ends a stop.
    mutating func succeed() -> Bool {
        defer { self = CopySuspicion(hasSucceeded: true) }
        return nextTry != nil
    }

    /// Records that a proven grant got `invalid_grant`, and returns `true` if the client is stopped now.
    ///
    /// A grant that waited for a confirmation does not count: after a restart in a wave many are refused again.
    mutating func refuse(_ grant: GrantID, awaitedConfirmation: Bool, at instant: BootInstant) -> Bool {
        guard !hasSucceeded else { return false }
        if !awaitedConfirmation { refused.insert(grant) }
        guard refused.count >= Self.maximumGrants else { return false }
        nextTry = instant + Self.retryInterval
        return true
    }
}
