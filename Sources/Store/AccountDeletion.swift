package import Clocks

/// Deletes a user: sessions and grant end, the backend is notified, and only a tombstone stays.
package enum AccountDeletion {
    /// What was deleted.
    package struct Outcome: Hashable, Sendable {
        package let endedSessions: Int
        /// The grant that ended, as it is stored until Google has been told and the tombstone is swept.
        package let grant: Grant?
    }

    /// Deletes the user within the caller's transaction; `end` is when the last token that names the id has expired.
    ///
    /// Answers `nil` where there is no such user, or none any more.
    package static func delete(
        user id: String,
        in transaction: any StoreTransaction,
        at now: Timestamp,
        until end: Timestamp
    ) throws -> Outcome? {
        guard var user = try transaction.user(id), !user.isDeleted else { return nil }
        let endedSessions = try transaction.endSessions(ofUser: id)
        let grant = try transaction.grant(ofUser: id).map { grant in
            try GrantEnding.end(grant, reason: .userDeleted, in: transaction, at: now).grant
        }
        user.delete(until: end)
        try transaction.update(user)
        try transaction.notify(.userDeleted, ofUser: id, at: now)
        return Outcome(endedSessions: endedSessions, grant: grant)
    }
}
