private import Synchronization

/// The memory that the bodies of all open requests may take together.
///
/// Requests above ``smallBody`` share half of it: large bodies can fill that half and still leave room for sign-ins.
final class RequestMemory: Sendable {
    static let smallBody = 8192

    private let limit: Int
    private let used = Atomic<Int>(0)

    init(limit: Int) {
        self.limit = limit
    }

    /// The number of reserved bytes.
    var count: Int { used.load(ordering: .relaxed) }

    /// Reserves bytes for a body that holds `held` already; returns `false` if they do not fit.
    func take(_ count: Int, held: Int) -> Bool {
        let available = held + count > Self.smallBody ? limit / 2 : limit
        let (_, total) = used.add(count, ordering: .relaxed)
        guard total <= available else {
            used.subtract(count, ordering: .relaxed)
            return false
        }
        return true
    }

    func giveBack(_ count: Int) {
        used.subtract(count, ordering: .relaxed)
    }
}
