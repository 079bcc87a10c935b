import Base
import Records
import Storage

/// Imports grants from a stream of bytes.
struct GrantImport: OverlappingImport {
    /// New grants share their round trips: a local PostgreSQL server stores these in about a tenth of a second.
    static let batchSize = 1000

    /// The end of a report about a user whose grant stays ended.
    static let endedGrant =
        "ended or changed the stored grant: kept, because the input does not have a newer refresh token"
    /// The same for a user who was deleted.
    static let deletedUser = "was deleted: not stored until every token that names the user has expired"

    /// The same for a record whose account is another connection of its user.
    static func connectedAccount(_ connection: ConnectionID) -> String {
        "has this Google account as the connection \(connection): not stored"
    }

    let clientIDs: [String]
    let writer: ImportedGrantWriter
    let time: any TimeSource
    let report: (String) -> Void

    var tally = ImportTally()
    var splitter = RecordSplitter()
    var batch: [ImportReading<ImportedGrant>] = []
    var storing: StoringBatch<ImportedGrant, ImportedGrantWriter.Outcome>?

    func read(_ record: RecordSplitter.Record) -> [ImportReading<ImportedGrant>] {
        let reading = Result { () throws(InputError) in
            let grant = try ImportedGrant(reading: record, clientIDs: clientIDs, at: time.now)
            try writer.check(grant)
            return grant
        }
        return [ImportReading(place: record.place, result: reading)]
    }

    func prepare(_ batch: [ImportedGrant]) throws -> @Sendable () async throws -> [ImportedGrantWriter.Outcome] {
        let prepared = try writer.prepare(batch)
        return { [writer] in try await writer.store(prepared: prepared) }
    }

    mutating func count(_ outcome: ImportedGrantWriter.Outcome, of grant: ImportedGrant, at place: String) {
        let owner = "user \(DisplayedText(grant.userID))\(grant.connection.clause)"
        switch outcome {
        case .stored: tally.stored += 1
        case .replaced: tally.replaced += 1
        case .kept:
            tally.kept += 1
            report("\(place): \(owner) is stored already: kept")
        case .keptEnded:
            tally.kept += 1
            report("\(place): \(owner) \(Self.endedGrant)")
        case .accountConnected(let other):
            tally.kept += 1
            report("\(place): \(owner) \(Self.connectedAccount(other))")
        case .refused:
            tally.deletedHere += 1
            report("\(place): \(owner) \(Self.deletedUser)")
        }
    }

    func summary(isDryRun: Bool) -> String { "\(tally.read) read: \(tally.counts(isDryRun: isDryRun))" }
}
