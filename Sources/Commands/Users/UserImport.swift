import Base
import Storage
import Worker

/// Imports users from a stream of bytes.
struct UserImport: RecordImport {
    /// The limit of unknown field names that are recorded.
    private static let ignoredLimit = 20

    let store: any AccountStore
    let map: UserFieldMap
    let replacesExisting: Bool
    /// `true` if everything is decided and nothing is stored.
    let isDryRun: Bool
    let time: any TimeSource
    let report: (String) -> Void

    var tally = ImportTally()
    var input = ImportInput<ImportedUser>()
    /// Unknown field names that occurred in valid records.
    private(set) var ignored: Set<String> = []

    init(
        store: any AccountStore,
        map: UserFieldMap = .unmapped,
        replacesExisting: Bool,
        isDryRun: Bool = false,
        time: any TimeSource,
        report: @escaping (String) -> Void
    ) {
        self.store = store
        self.map = map
        self.replacesExisting = replacesExisting
        self.isDryRun = isDryRun
        self.time = time
        self.report = report
    }

    mutating func read(_ record: RecordSplitter.Record) -> Result<ImportedUser, ImportProblem> {
        do throws(ImportProblem) {
            let members = try record.members()
            let user = try ImportedUser(members: members, by: map, at: time.now)
            if ignored.count < Self.ignoredLimit {
                ignored.formUnion(map.ignored(in: members).prefix(Self.ignoredLimit - ignored.count))
            }
            return .success(user)
        } catch {
            return .failure(error)
        }
    }

    func store(_ batch: [ImportedUser]) async throws -> [ImportedUserWriter.Outcome] {
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

    mutating func count(_ outcome: ImportedUserWriter.Outcome, of user: ImportedUser, line: Int) {
        let name = "user \(DisplayedText(user.id))"
        switch outcome {
        case .stored: tally.stored += 1
        case .completed: tally.completed += 1
        case .replaced: tally.replaced += 1
        case .unchanged: tally.unchanged += 1
        case .kept:
            tally.kept += 1
            report("line \(line): \(name) is stored with other content: kept")
        case .deleted:
            tally.countBad("the user was deleted")
            report("line \(line): \(name) was deleted: not stored while tokens may live")
        case .joined(let other):
            tally.completed += 1
            report("line \(line): \(name) is also user \(DisplayedText(other)), who signed in here: joined")
        case .conflict(let other):
            let label = RecordFields([:], names: map.names).label("google_user_id")
            tally.countBad("another user has the same \(label)")
            report("line \(line): \(name) has the same \(label) as user \(DisplayedText(other)): not stored")
        }
    }
}
