package import Crypto

/// The report of a live worker about itself.
package struct WorkerReport: Hashable, Sendable {
    /// The age after which a report belongs to a dead worker.
    package static let lifetime: Duration = .seconds(30)

    package var id: String
    /// Every key with which it can open tokens.
    package var keyIDs: [KeyID]
    package var sealingKeyID: KeyID
    /// `true` if it sends refreshes: all such workers share the pace of a client id and the due grants.
    package var isRefreshing: Bool

    package init(id: String, keyIDs: [KeyID], sealingKeyID: KeyID, isRefreshing: Bool = false) {
        self.id = id
        self.keyIDs = keyIDs
        self.sealingKeyID = sealingKeyID
        self.isRefreshing = isRefreshing
    }
}
