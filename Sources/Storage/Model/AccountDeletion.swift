package import Base

/// The deletion of a user: ends the sessions and the grant, notifies the backend, and keeps only a tombstone.
package struct AccountDeletion: Hashable, Sendable {
    package let endedSessions: Int
    /// The ended grant, as stored until its revocation is done and the tombstone is removed.
    package let grant: Grant?
    /// `true` if a revocation would end another stored grant too, so Google is not notified.
    package let isShared: Bool

    /// The minimum time for which a deleted id is refused: PayPulse's own tokens live a day.
    static let minimumTombstone: Duration = .seconds(86_400)

    /// Deletes the user within the caller's transaction. Returns `nil` if the user does not exist, or was deleted
    /// before.
    package static func delete(user id: String, in transaction: any StoreTransaction, at now: Timestamp) throws
        -> AccountDeletion?
    {
        guard var user = try transaction.user(id), !user.isDeleted else { return nil }
        let endedSessions = try transaction.endSessions(ofUser: id)
        let ending = try transaction.grant(ofUser: id).map { grant in
            try GrantDisconnection.end(grant, reason: .userDeleted, in: transaction, at: now)
        }
        user.delete(until: now + minimumTombstone)
        try transaction.update(user)
        try transaction.notify(.userDeleted, ofUser: id, at: now)
        return AccountDeletion(endedSessions: endedSessions, grant: ending?.grant, isShared: ending?.isShared ?? false)
    }
}
