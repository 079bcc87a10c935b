import Clocks

/// Brings grants in from a stream of bytes, in batches, whatever is wrong with some of them.
struct GrantImport: RecordImport {
    /// The rest of a sentence about a user whose grant stays ended.
    static let endedGrant = "ended the stored grant: kept, for there is no new refresh token"
    /// Lines whose grants share a transaction: enough to share its costs, and few enough that no other writer waits long.
    static let batchSize = 200

    let reader: GrantReader
    let intake: GrantIntake
    let time: any TimeSource
    /// Where bad lines and kept grants are reported, a line each.
    let report: (String) -> Void

    private(set) var tally = ImportTally()
    private var splitter = RecordSplitter()
    private var batch: [(line: Int, reading: Result<ImportedGrant, ImportProblem>)] = []

    init(
        reader: GrantReader,
        intake: GrantIntake,
        time: any TimeSource,
        report: @escaping (String) -> Void
    ) {
        self.reader = reader
        self.intake = intake
        self.time = time
        self.report = report
    }

    /// Takes the next bytes; all that is complete in them is stored, but for what waits for its batch to fill.
    mutating func feed(_ chunk: [UInt8]) async throws {
        try await take(splitter.feed(chunk))
    }

    /// Stores what is left.
    mutating func finish() async throws {
        try await take(splitter.finish())
        try await storeBatch()
    }

    private mutating func take(_ records: [RecordSplitter.Record]) async throws {
        for record in records {
            do throws(ImportProblem) {
                batch.append((record.line, .success(try reader.grant(from: record, at: time.now))))
            } catch {
                batch.append((record.line, .failure(error)))
            }
            if batch.count == Self.batchSize { try await storeBatch() }
        }
    }

    private mutating func storeBatch() async throws {
        let grants = batch.compactMap { item in
            if case .success(let grant) = item.reading { grant } else { nil }
        }
        var outcomes = try await intake.store(grants)[...]
        for item in batch {
            switch item.reading {
            case .success(let grant):
                guard let outcome = outcomes.popFirst() else { break }
                count(outcome, of: grant, line: item.line)
            case .failure(let problem):
                tally.countBad(problem.message)
                report("line \(item.line): \(problem.message)")
            }
        }
        batch = []
    }

    private mutating func count(_ outcome: GrantIntake.Outcome, of grant: ImportedGrant, line: Int) {
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
