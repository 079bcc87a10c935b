package import Base

/// The deletion of a user: ends the sessions and the grants, notifies the backend, and keeps only a tombstone.
package struct AccountDeletion: Hashable, Sendable {
    package let endedSessions: Int
    /// The ends of the user's grants, which are stored until their revocation is done and the tombstone is removed.
    package let ends: [GrantDisconnection]

    /// The minimum time for which a deleted id is refused: PayPulse's own tokens live a day.
    static let minimumTombstone: Duration = .seconds(86_400)

    /// Deletes the user within the caller's transaction. Returns `nil` if the user does not exist, or was deleted
    /// before.
    package static func delete(user id: String, in transaction: any StoreTransaction, at now: Timestamp) throws
        -> AccountDeletion?
    {
        guard var user = try transaction.user(id), !user.isDeleted else { return nil }
        let endedSessions = try transaction.endSessions(ofUser: id)
        let ends = try transaction.grants(ofUser: id).map { grant in
            try GrantDisconnection.end(grant, reason: .userDeleted, in: transaction, at: now)
        }
        user.delete(until: now + minimumTombstone)
        try transaction.update(user)
        try transaction.notify(.userDeleted, ofUser: id, at: now)
        return AccountDeletion(endedSessions: endedSessions, ends: ends)
    }
}
