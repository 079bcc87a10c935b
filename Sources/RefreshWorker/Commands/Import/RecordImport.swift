import Base
import Records

/// An import from a stream of bytes that stores its records in batches.
///
/// Bad records do not stop it.
protocol RecordImport {
    associatedtype Imported
    associatedtype Outcome

    /// The number of records per transaction: enough to share its cost, few enough that other writers do not wait long.
    static var batchSize: Int { get }

    var tally: ImportTally { get set }
    var splitter: RecordSplitter { get set }
    /// What was read and is not stored yet.
    var batch: [ImportReading<Imported>] { get set }
    /// Receives a line for each bad record and for each record that is kept.
    var report: (String) -> Void { get }

    /// Returns what a record holds: one item, or as many as its form allows.
    mutating func read(_ record: RecordSplitter.Record) -> [ImportReading<Imported>]
    /// Stores a batch in one transaction and returns the outcomes in order.
    func store(_ batch: [Imported]) async throws -> [Outcome]
    mutating func count(_ outcome: Outcome, of imported: Imported, at place: String)
    /// Stores the records that were read, or begins to.
    mutating func storeBatch() async throws
    /// Waits until everything is stored.
    mutating func finishStoring() async throws
    /// Returns a summary in one line, without the words that each dry run begins with.
    func summary(isDryRun: Bool) -> String
    /// Lines before the summary, about the input as a whole.
    var remarks: [String] { get }
    /// The numbers for programs.
    var json: JSONLine { get }
}

extension RecordImport {
    var remarks: [String] { [] }

    func sentence(isDryRun: Bool) -> String {
        (isDryRun ? "dry run, nothing was stored; " : "") + summary(isDryRun: isDryRun)
    }

    var json: JSONLine { tally.json }

    /// For records that each take round trips.
    static var batchSize: Int { 200 }

    /// Reads the next bytes and stores the complete records in them.
    ///
    /// Those of an incomplete batch wait.
    mutating func feed(_ chunk: [UInt8]) async throws {
        try await take(splitter.feed(chunk))
    }

    /// Stores the remaining records.
    mutating func finish() async throws {
        try await take(splitter.finish())
        try await storeBatch()
        try await finishStoring()
    }

    private mutating func take(_ records: [RecordSplitter.Record]) async throws {
        for record in records {
            batch += read(record)
            if batch.count >= Self.batchSize { try await storeBatch() }
        }
    }

    mutating func storeBatch() async throws {
        let good = batch.imported()
        let outcomes = good.isEmpty ? [] : try await store(good)
        count(outcomes, of: batch)
        batch = []
    }

    mutating func finishStoring() async throws {}

    mutating func count(_ outcomes: [Outcome], of items: [ImportReading<Imported>]) {
        var outcomes = outcomes[...]
        for item in items {
            switch item.result {
            case .success(let imported):
                guard let outcome = outcomes.popFirst() else { break }
                count(outcome, of: imported, at: item.place)
            case .failure(let problem):
                tally.countBad(problem.message)
                let user = problem.userID.map { "user \(DisplayedText($0)): " } ?? ""
                report("\(item.place): \(user)\(problem.message)")
            }
        }
    }
}
