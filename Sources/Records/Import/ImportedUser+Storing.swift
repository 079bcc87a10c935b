package import Base
package import Storage

extension ImportedUser {
    package enum Outcome: Equatable, Sendable {
        case stored
        /// The user was known in part, and the missing part was stored.
        case completed
        case replaced
        /// The user is stored exactly as the record says.
        case unchanged
        /// The user is stored with other content, which is kept.
        case kept
        /// The user was deleted, and the tombstone is still stored.
        case deleted
        /// A user with this id had signed in here with the same Google account, and is this user now.
        case joined(String)
        /// Another user, with this id, has the same Google account.
        case conflict(String)
    }

    /// Stores the user, or decides to keep the stored one.
    ///
    /// `replaces` is `true` if the record takes precedence over the stored user.
    package func store(
        in transaction: any StoreTransaction,
        replacing replaces: Bool,
        writes: Bool,
        at now: Timestamp
    ) throws -> Outcome {
        let stored = try transaction.user(id)
        if stored?.isDeleted == true { return .deleted }
        let (decided, outcome) = decide(over: stored, replacing: replaces, at: now)
        guard var user = decided else { return outcome }
        var joined: User?
        if let account = user.googleUserID, account != stored?.googleUserID {
            joined = try transaction.user(withGoogleUserID: account)
        }
        if let joined {
            guard try mayJoin(joined, in: transaction) else { return .conflict(joined.id) }
            user.join(joined)
        }
        guard writes else {
            guard let joined else { return outcome }
            return .joined(joined.id)
        }
        if var joined {
            // No two users can have the account, even for a moment.
            joined.googleUserID = nil
            try transaction.update(joined)
        }
        if stored == nil { try transaction.insert(user) } else { try transaction.update(user) }
        guard let joined else { return outcome }
        try transaction.move(user: joined.id, to: user.id, at: now)
        return .joined(joined.id)
    }

    /// `true` if the other user is known only from a sign-in here: the user signed up at the backend and then signed in
    /// here before the import.
    private func mayJoin(_ other: User, in transaction: any StoreTransaction) throws -> Bool {
        guard other.isFromSignIn else { return false }
        return try transaction.grants(ofUser: id).isEmpty || transaction.grants(ofUser: other.id).isEmpty
    }

    /// Returns the user to store, if any, and the outcome of the record.
    private func decide(over stored: User?, replacing replaces: Bool, at now: Timestamp) -> (User?, Outcome) {
        let user = user(over: stored, at: now)
        guard let stored else { return (user, .stored) }
        guard user != stored else { return (nil, .unchanged) }
        if stored.isPlaceholder { return (user, .stored) }
        if replaces { return (user, .replaced) }
        let completed = completing(stored)
        return completed == stored ? (nil, .kept) : (completed, .completed)
    }
}
