package import Base
import Storage

/// The refusals since the last success of a proven grant whose cause may be the client or the grant.
package struct ConsecutiveRefusals: Hashable, Sendable {
    /// The shortest time that a row must last; while other grants succeed now and then, a row does not last as long.
    package static let shortestSpan: Duration = .seconds(60)

    package var since: BootInstant?
    package var count: Int
    package var grants: [Int64]

    package init(since: BootInstant? = nil, count: Int = 0, grants: [Int64] = []) {
        self.since = since
        self.count = count
        self.grants = Array(grants.prefix(Breaker.grantsToOpen))
    }

    /// Adds a refusal; returns `true` if the row is long enough to be the client's fault.
    mutating func add(_ grant: GrantID, at now: BootInstant) -> Bool {
        let first = since ?? now
        since = first
        count = min(count + 1, 1_000_000)
        if grants.count < Breaker.grantsToOpen, !grants.contains(grant.rawValue) { grants.append(grant.rawValue) }
        return count >= Breaker.failuresToOpen && grants.count >= Breaker.grantsToOpen
            && now - first >= Self.shortestSpan
    }
}
