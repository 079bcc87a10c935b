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
