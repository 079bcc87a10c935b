package import Base

/// Plain refreshes of one client that its stored health does not contain yet.
package struct UncountedSuccesses: Hashable, Sendable {
    package var at: Timestamp
    package var count: Int
    package var clientSecret: UInt32

    package init(at: Timestamp, count: Int, clientSecret: UInt32) {
        self.at = at
        self.count = count
        self.clientSecret = clientSecret
    }
}
