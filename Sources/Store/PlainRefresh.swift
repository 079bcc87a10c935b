package import Clocks

/// A successful refresh whose decision depends on the claimed grant alone.
///
/// A store may write it without reading the grant again, if it can see that the grant is still as it was claimed.
package struct PlainRefresh: Sendable {
    /// The grant as the claim returned it.
    package let claimed: Grant
    /// The grant as it is to be stored, without a lease.
    package let refreshed: Grant
    /// The fingerprint of the client secret that the request contained.
    package let clientSecret: UInt32

    package init(claimed: Grant, refreshed: Grant, clientSecret: UInt32) {
        self.claimed = claimed
        self.refreshed = refreshed
        self.clientSecret = clientSecret
    }
}

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

/// The version of a grant's row, as a claim has read it.
///
/// All versions are equal to each other: a version says when the row was written, and not what it contains.
package struct RowVersion: Hashable, Sendable {
    /// The number of the version; `nil` if the store does not number them.
    package let number: Int64?

    package init(_ number: Int64? = nil) {
        self.number = number
    }

    package static func == (_: RowVersion, _: RowVersion) -> Bool { true }

    package func hash(into _: inout Hasher) {}
}
