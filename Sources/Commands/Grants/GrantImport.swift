import Base
import Worker

/// Imports grants from a stream of bytes.
package struct GrantImport: RecordImport {
    /// The end of a report about a user whose grant stays ended.
    package static let endedGrant =
        "ended or changed the stored grant: kept, because the input does not have a newer refresh token"

    let reader: GrantReader
    let writer: ImportedGrantWriter
    let time: any TimeSource
    let report: (String) -> Void

    var tally = ImportTally()
    var input = ImportInput<ImportedGrant>()

    init(
        reader: GrantReader,
        writer: ImportedGrantWriter,
        time: any TimeSource,
        report: @escaping (String) -> Void
    ) {
        self.reader = reader
        self.writer = writer
        self.time = time
        self.report = report
    }

    func read(_ record: RecordSplitter.Record) -> Result<ImportedGrant, ImportProblem> {
        Result { () throws(ImportProblem) in try reader.grant(from: record, at: time.now) }
    }

    func store(_ batch: [ImportedGrant]) async throws -> [ImportedGrantWriter.Outcome] {
        try await writer.store(batch)
    }

    mutating func count(_ outcome: ImportedGrantWriter.Outcome, of grant: ImportedGrant, line: Int) {
        switch outcome {
        case .stored: tally.stored += 1
        case .replaced: tally.replaced += 1
        case .kept:
            tally.kept += 1
            report("line \(line): user \(DisplayedText(grant.userID)) is stored already: kept")
        case .keptEnded:
            tally.kept += 1
            report("line \(line): user \(DisplayedText(grant.userID)) \(Self.endedGrant)")
        case .refused:
            tally.countBad("the user was deleted")
            report("line \(line): user \(DisplayedText(grant.userID)) was deleted: not stored while tokens may live")
        }
    }
}
