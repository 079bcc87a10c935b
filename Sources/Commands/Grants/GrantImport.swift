import Base

/// Imports grants from a stream of bytes.
struct GrantImport: RecordImport {
    /// The end of a report about a user whose grant stays ended.
    static let endedGrant =
        "ended or changed the stored grant: kept, because the input does not have a newer refresh token"

    let reader: GrantReader
    let writer: ImportedGrantWriter
    let time: any TimeSource
    let report: (String) -> Void

    var tally = ImportTally()
    var input = ImportInput<ImportedGrant>()

    func read(_ record: RecordSplitter.Record) -> [ImportReading<ImportedGrant>] {
        [ImportReading(of: record) { () throws(ImportProblem) in try reader.grant(from: record, at: time.now) }]
    }

    func store(_ batch: [ImportedGrant]) async throws -> [ImportedGrantWriter.Outcome] {
        try await writer.store(batch)
    }

    mutating func count(_ outcome: ImportedGrantWriter.Outcome, of grant: ImportedGrant, at place: String) {
        switch outcome {
        case .stored: tally.stored += 1
        case .replaced: tally.replaced += 1
        case .kept:
            tally.kept += 1
            report("\(place): user \(DisplayedText(grant.userID)) is stored already: kept")
        case .keptEnded:
            tally.kept += 1
            report("\(place): user \(DisplayedText(grant.userID)) \(Self.endedGrant)")
        case .refused:
            tally.countBad("the user was deleted")
            report("\(place): user \(DisplayedText(grant.userID)) was deleted: not stored while tokens may live")
        }
    }

    func sentence(isDryRun: Bool) -> String {
        isDryRun
            ? """
            dry run, nothing was stored; \(tally.read) read: \(tally.stored) to store, \(tally.replaced) to replace, \
            \(tally.kept) to keep, \(tally.bad) bad
            """
            : """
            \(tally.read) read: \(tally.stored) stored, \(tally.replaced) replaced, \(tally.kept) kept, \(tally.bad) bad
            """
    }
}

/// The results of an import so far.
struct ImportTally: Equatable, Sendable {
    /// The limit of reasons that are counted separately.
    ///
    /// Others are counted together, so that memory stays bounded.
    private static let reasonLimit = 20

    var stored = 0
    /// Users who were stored in part.
    ///
    /// The missing part was stored.
    var completed = 0
    var replaced = 0
    /// Records that are stored with other content, which was kept.
    var kept = 0
    /// Records that are stored exactly as in the input.
    ///
    /// Only an import of users compares them.
    var unchanged = 0
    var bad = 0
    private(set) var reasons: [String: Int] = [:]
    private(set) var otherReasons = 0

    var read: Int { stored + completed + replaced + kept + unchanged + bad }

    mutating func countBad(_ reason: String) {
        bad += 1
        if reasons[reason] != nil || reasons.count < Self.reasonLimit {
            reasons[reason, default: 0] += 1
        } else {
            otherReasons += 1
        }
    }

    /// The numbers for programs.
    var json: JSONLine {
        var line = JSONLine()
        line.field("read", read)
        line.field("stored", stored)
        line.field("completed", completed)
        line.field("replaced", replaced)
        line.field("kept", kept)
        line.field("unchanged", unchanged)
        line.field("bad", bad)
        return line
    }

    /// The reasons of bad records, if one of them is frequent: a line for each record was reported before.
    var summaryOfReasons: [String] {
        otherReasons > 0 || reasons.values.contains { $0 > 1 } ? reasonLines : []
    }

    /// One line for each reason of bad records, the most frequent first.
    var reasonLines: [String] {
        let lines = reasons.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "bad, \($0.value) of \(read): \($0.key)" }
        return otherReasons == 0 ? lines : lines + ["bad, \(otherReasons) of \(read): for other reasons, see above"]
    }
}

/// An import from a stream of bytes that stores its records in batches.
///
/// Bad records do not stop it.
protocol RecordImport {
    associatedtype Imported
    associatedtype Outcome

    var tally: ImportTally { get set }
    var input: ImportInput<Imported> { get set }
    /// Receives a line for each bad record and for each record that is kept.
    var report: (String) -> Void { get }

    /// Returns what a record holds: one item, or as many as its form allows.
    mutating func read(_ record: RecordSplitter.Record) -> [ImportReading<Imported>]
    /// Stores a batch in one transaction and returns the outcomes in order.
    func store(_ batch: [Imported]) async throws -> [Outcome]
    mutating func count(_ outcome: Outcome, of imported: Imported, at place: String)
    /// Returns a summary in one line.
    func sentence(isDryRun: Bool) -> String
    /// Lines before the summary, about the input as a whole.
    var remarks: [String] { get }
    /// The numbers for programs.
    var json: JSONLine { get }
}

/// An item of an import's input: its place, such as `line 5`, and its content.
struct ImportReading<Imported> {
    let place: String
    let result: Result<Imported, ImportProblem>
}

extension ImportReading {
    init(of record: RecordSplitter.Record, _ read: () throws(ImportProblem) -> Imported) {
        self.init(place: "line \(record.line)", result: Result(catching: read))
    }
}

extension RecordImport {
    var remarks: [String] { [] }
    var json: JSONLine { tally.json }

    /// The number of records per transaction: enough to share its cost, few enough that other writers do not wait long.
    static var batchSize: Int { 200 }

    /// Reads the next bytes and stores the complete records in them.
    ///
    /// Those of an incomplete batch wait.
    mutating func feed(_ chunk: [UInt8]) async throws {
        try await take(input.splitter.feed(chunk))
    }

    /// Stores the remaining records.
    mutating func finish() async throws {
        try await take(input.splitter.finish())
        try await storeBatch()
    }

    private mutating func take(_ records: [RecordSplitter.Record]) async throws {
        for record in records {
            input.batch += read(record)
            if input.batch.count >= Self.batchSize { try await storeBatch() }
        }
    }

    private mutating func storeBatch() async throws {
        let good = input.batch.compactMap { item in
            if case .success(let imported) = item.result { imported } else { nil }
        }
        var outcomes = (good.isEmpty ? [] : try await store(good))[...]
        for item in input.batch {
            switch item.result {
            case .success(let imported):
                guard let outcome = outcomes.popFirst() else { break }
                count(outcome, of: imported, at: item.place)
            case .failure(let problem):
                tally.countBad(problem.message)
                report("\(item.place): \(problem.report)")
            }
        }
        input.batch = []
    }
}
