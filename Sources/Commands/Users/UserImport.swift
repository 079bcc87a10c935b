import Base
import Storage

/// Imports users from a stream of bytes.
struct UserImport: RecordImport {
    /// The limit of unknown field names that are recorded.
    private static let ignoredLimit = 20

    /// `nil` for a dry run without a database.
    let store: (any Store)?
    var map = UserFieldMap.unmapped
    let replacesExisting: Bool
    /// `true` if everything is decided and nothing is stored.
    var isDryRun = false
    let time: any TimeSource
    let report: (String) -> Void

    var tally = ImportTally()
    var input = ImportInput<ImportedUser>()
    /// Unknown field names that occurred in valid records.
    private(set) var ignored: Set<String> = []

    mutating func read(_ record: RecordSplitter.Record) -> [ImportReading<ImportedUser>] {
        let reading = ImportReading(of: record) { () throws(ImportProblem) in
            let members = try record.members()
            let user = try ImportedUser(members: members, by: map, at: time.now)
            if ignored.count < Self.ignoredLimit {
                ignored.formUnion(map.ignored(in: members).prefix(Self.ignoredLimit - ignored.count))
            }
            return user
        }
        return [reading]
    }

    func store(_ batch: [ImportedUser]) async throws -> [ImportedUserWriter.Outcome] {
        guard let store else { return batch.map { _ in .stored } }
        let (replaces, writes, now) = (replacesExisting, !isDryRun, time.now)
        return try await store.transact { transaction in
            try batch.map { user in
                try ImportedUserWriter(imported: user, replaces: replaces, now: now).store(
                    in: transaction,
                    writes: writes
                )
            }
        }
    }

    mutating func count(_ outcome: ImportedUserWriter.Outcome, of user: ImportedUser, at place: String) {
        let name = "user \(DisplayedText(user.id))"
        switch outcome {
        case .stored: tally.stored += 1
        case .completed: tally.completed += 1
        case .replaced: tally.replaced += 1
        case .unchanged: tally.unchanged += 1
        case .kept:
            tally.kept += 1
            report("\(place): \(name) is stored with other content: kept")
        case .deleted:
            tally.countBad("the user was deleted")
            report("\(place): \(name) was deleted: not stored while tokens may live")
        case .joined(let other):
            tally.completed += 1
            report("\(place): \(name) is also user \(DisplayedText(other)), who signed in here: joined")
        case .conflict(let other):
            let label = RecordFields([:], names: map.names).label("google_user_id")
            tally.countBad("another user has the same \(label)")
            report("\(place): \(name) has the same \(label) as user \(DisplayedText(other)): not stored")
        }
    }

    func sentence(isDryRun: Bool) -> String {
        isDryRun
            ? """
            dry run, nothing was stored; \(tally.read) read: \(tally.stored) to store, \(tally.completed) to complete, \
            \(tally.replaced) to replace, \(tally.kept) to keep, \(tally.unchanged) unchanged, \(tally.bad) bad
            """
            : """
            \(tally.read) read: \(tally.stored) stored, \(tally.completed) completed, \(tally.replaced) replaced, \
            \(tally.kept) kept, \(tally.unchanged) unchanged, \(tally.bad) bad
            """
    }

    var remarks: [String] {
        let names = ignored.sorted().map { "\(DisplayedText($0))" }
        return names.isEmpty ? [] : ["fields that were not imported: \(names.joined(separator: ", "))"]
    }
}

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
        /// A user with this id had signed in here with the same Google account, and is this user now.
        case joined(String)
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
        let (decided, outcome) = decide(over: stored)
        guard var user = decided else { return outcome }
        var joined: User?
        if let account = user.googleUserID, account != stored?.googleUserID {
            joined = try transaction.user(withGoogleUserID: account)
        }
        if let joined {
            guard try mayJoin(joined, in: transaction) else { return .conflict(joined.id) }
            user.join(joined)
        }
        guard writes else { return joined.map { .joined($0.id) } ?? outcome }
        if var joined {
            // No two users can have the account, even for a moment.
            joined.googleUserID = nil
            try transaction.update(joined)
        }
        if stored == nil { try transaction.insert(user) } else { try transaction.update(user) }
        guard let joined else { return outcome }
        try transaction.move(user: joined.id, to: user.id)
        return .joined(joined.id)
    }

    /// `true` if the other user is known only from a sign-in here: the user signed up at the backend and then signed in
    /// here before the import.
    private func mayJoin(_ other: User, in transaction: any StoreTransaction) throws -> Bool {
        guard other.isFromSignIn else { return false }
        return try transaction.grant(ofUser: imported.id) == nil || transaction.grant(ofUser: other.id) == nil
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
