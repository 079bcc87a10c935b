import Base
import Routes
import Storage

extension Command {
    /// `users import FILE`: imports users that another system has kept.
    static let importUsers = Command(
        words: ["users", "import"],
        summary: "import users from a file of JSON",
        discussion: """
            Each line is a JSON object with user_id and optionally email, email_verified, name, picture, \
            google_user_id, is_active, last_login, and created_on or created_at: a date such as 2026-01-31, a time \
            such as 2026-01-31T12:00:00Z, or seconds since 1970. With a date in created_on, created_at can be a time \
            of day in UTC. It also reads objects over several lines, one array around all objects, and rows of a \
            DynamoDB export ({"Item": {"UserID": {"S": …}}}), with or without Item.

            --map gives the names of the fields in files that use other names: paypulse for rows of PayPulse's \
            DynamoDB table Users (UserID, Email, Name, CreatedOn, CreatedAt), comprehension-engine for rows of \
            ComprehensionEngine's PostgreSQL table users (id, google_id, avatar_url), or FIELD=NAME,… with the names \
            above and the file's own.

            Invalid lines are reported with their number and skipped; valid ones are stored. A line about a stored \
            user adds missing fields, and takes the earlier creation; stored fields that differ are kept and reported, \
            unless --replace is given. Fields that a line does not have are always kept. A user who signed in here with \
            the google_user_id of a line before that line was imported gets the line's user_id, and stays signed in. An \
            interrupted import can be started again.

            At the end a line counts the users that were read, stored, completed, replaced, kept with other content \
            than the file's, unchanged, and bad. The same command again, with --dry-run, counts every user as \
            unchanged if the database has the content of the file. A dry run checks each line alone, so it does not \
            see contradictions between two lines of one file.
            """,
        operands: [.file("the file to read; - is standard input")],
        options: [
            OptionSpecification(
                "map",
                .text(as: "MAP", maximumLength: 1024, signs: "=,_-.:$#@/"),
                "paypulse, comprehension-engine, or FIELD=NAME,… for other names of fields"
            ),
            .toggle("replace", "replace fields of stored users"),
            .toggle("dry-run", "store nothing and say what would be done"),
            .jsonSummary,
        ],
        settings: [.config, .database, .logLevel],
        examples: [
            "refresh-worker users import users.jsonl": "from a file",
            "zcat export/data/*.json.gz | refresh-worker users import - --map paypulse":
                "from an export of PayPulse's table",
            """
            psql -Atc 'SELECT row_to_json(u) FROM users u' | refresh-worker users import - --map comprehension-engine
            """: "from ComprehensionEngine's database",
        ],
        exitCodes: .ofDatabase(.badData, .inputUnreadable),
        check: { arguments throws(CommandError) in
            do throws(InputError) {
                _ = try UserFieldMap(reading: arguments["map"])
            } catch {
                throw arguments.refusal(["--map: \(error.message)"])
            }
        }
    ) { arguments, context in
        let isDryRun = arguments.has("dry-run")
        let map = try UserFieldMap(reading: arguments["map"])
        let input = try InputFile(path: arguments.operand)
        let store = try await context.openStore(forDryRun: isDryRun)
        let run = ImportRun(
            file: input,
            progress: ImportProgress(of: "users", time: context.time),
            isDryRun: isDryRun,
            isJSON: context.printsJSON,
            close: { await store?.close() }
        )
        return try await run.perform(
            UserImport(
                store: store,
                map: map,
                replacesExisting: arguments.has("replace"),
                isDryRun: isDryRun,
                time: context.time,
                report: run.report
            )
        )
    }
}

extension CommandContext {
    /// Opens the database, or returns `nil` if a dry run would have to create it.
    ///
    /// Such a dry run finds no record stored.
    func openStore(forDryRun isDryRun: Bool) async throws -> (any Store)? {
        isDryRun ? try await openStoreIfThere(for: .reading) : try await openStore()
    }
}

/// Imports users from a stream of bytes.
struct UserImport: RecordImport {
    /// The limit of unknown field names that are recorded.
    private static let maximumIgnored = 20

    /// `nil` for a dry run without a database.
    let store: (any Store)?
    var map = UserFieldMap.unmapped
    let replacesExisting: Bool
    /// `true` if everything is decided and nothing is stored.
    var isDryRun = false
    let time: any TimeSource
    let report: (String) -> Void

    var tally = ImportTally()
    var splitter = RecordSplitter()
    var batch: [ImportReading<ImportedUser>] = []
    /// Unknown field names that occurred in valid records.
    private(set) var ignored: Set<String> = []

    mutating func read(_ record: RecordSplitter.Record) -> [ImportReading<ImportedUser>] {
        let reading = Result { () throws(InputError) in
            let members = try record.members()
            let user = try ImportedUser(members: members, by: map, at: time.now)
            if ignored.count < Self.maximumIgnored {
                ignored.formUnion(map.ignored(in: members).prefix(Self.maximumIgnored - ignored.count))
            }
            return user
        }
        return [(record.place, reading)]
    }

    func store(_ batch: [ImportedUser]) async throws -> [ImportedUser.Outcome] {
        guard let store else { return batch.map { _ in .stored } }
        let (replaces, writes, now) = (replacesExisting, !isDryRun, time.now)
        return try await store.transact { transaction in
            try batch.map { user in
                try user.store(in: transaction, replacing: replaces, writes: writes, at: now)
            }
        }
    }

    mutating func count(_ outcome: ImportedUser.Outcome, of user: ImportedUser, at place: String) {
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
            tally.deletedHere += 1
            report("\(place): \(name) \(GrantImport.deletedUser)")
        case .joined(let other):
            tally.completed += 1
            report("\(place): \(name) is also user \(DisplayedText(other)), who signed in here: joined")
        case .conflict(let other):
            let label = RecordFields(members: [:], names: map.names).label("google_user_id")
            tally.countBad("another user has the same \(label)")
            report("\(place): \(name) has the same \(label) as user \(DisplayedText(other)): not stored")
        }
    }

    func summary(isDryRun: Bool) -> String {
        "\(tally.read) read: \(tally.counts(isDryRun: isDryRun, comparing: true))"
    }

    var remarks: [String] {
        let names = ignored.sorted().map { "\(DisplayedText($0))" }
        return names.isEmpty ? [] : ["fields that were not imported: \(names.joined(separator: ", "))"]
    }
}

extension ImportedUser {
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

    /// Stores the user, or decides to keep the stored one.
    ///
    /// `replaces` is `true` if the record takes precedence over the stored user.
    fileprivate func store(
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
        return try transaction.grant(ofUser: id) == nil || transaction.grant(ofUser: other.id) == nil
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
