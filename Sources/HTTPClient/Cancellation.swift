private import Synchronization

/// A flag that the caller of a request sets to cancel it.
///
/// The client's thread sees it even if the cancel command arrives before the request.
final class Cancellation: Sendable {
    private let requested = Atomic(false)

    var isRequested: Bool { requested.load(ordering: .acquiring) }

    func request() {
        requested.store(true, ordering: .releasing)
    }
}
