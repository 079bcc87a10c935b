import Base
import Records
import Storage

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
        return [ImportReading(place: record.place, result: reading)]
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
