import Clocks
import Store

/// Stores one imported user, or decides to keep the stored one.
struct ImportedUserWriter: Sendable {
    enum Outcome: Equatable, Sendable {
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
        /// Another user, with this id, has the same Google account.
        case conflict(String)
    }

    let imported: ImportedUser
    /// `true` if the record takes precedence over the stored user.
    let replaces: Bool
    let now: Timestamp

    func store(in transaction: any StoreTransaction, writes: Bool) throws -> Outcome {
        let stored = try transaction.user(imported.id)
        if stored?.isDeleted == true { return .deleted }
        let (user, outcome) = decide(over: stored)
        guard let user else { return outcome }
        if let account = user.googleUserID, account != stored?.googleUserID,
            let holder = try transaction.user(withGoogleUserID: account), holder.id != user.id
        {
            return .conflict(holder.id)
        }
        guard writes else { return outcome }
        if stored == nil { try transaction.insert(user) } else { try transaction.update(user) }
        return outcome
    }

    /// Returns the user to store, if any, and the outcome of the record.
    private func decide(over stored: User?) -> (User?, Outcome) {
        let user = imported.user(over: stored, at: now)
        guard let stored else { return (user, .stored) }
        guard user != stored else { return (nil, .unchanged) }
        if stored.isPlaceholder { return (user, .stored) }
        if replaces { return (user, .replaced) }
        let completed = imported.completing(stored)
        return completed == stored ? (nil, .kept) : (completed, .completed)
    }
}
