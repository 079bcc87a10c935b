private import Synchronization

/// The memory that the bodies of all open requests can take together.
///
/// Bodies larger than ``smallBody`` together get at most half of it, so large bodies cannot prevent sign-ins. Bodies
/// count as they arrive: with a reservation for the declared length, a caller could take everything by declarations
/// alone.
final class RequestMemory: Sendable {
    static let smallBody = 8192

    private let limit: Int
    private let used = Atomic<Int>(0)

    init(limit: Int) {
        self.limit = limit
    }

    /// Reserved bytes.
    var count: Int { used.load(ordering: .relaxed) }

    /// Reserves bytes for a body that has `alreadyReserved` bytes, and returns `false` if they do not fit.
    func reserve(_ count: Int, alreadyReserved: Int) -> Bool {
        let available = alreadyReserved + count > Self.smallBody ? limit / 2 : limit
        let (_, total) = used.add(count, ordering: .relaxed)
        guard total <= available else {
            used.subtract(count, ordering: .relaxed)
            return false
        }
        return true
    }

    func release(_ count: Int) {
        used.subtract(count, ordering: .relaxed)
    }
}
