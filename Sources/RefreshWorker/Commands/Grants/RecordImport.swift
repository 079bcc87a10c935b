/// An import of a stream of bytes, which stores its records in batches; bad records do not stop it.
protocol RecordImport {
    associatedtype Imported
    associatedtype Outcome

    var tally: ImportTally { get set }
    var input: ImportInput<Imported> { get set }
    /// Takes a line for each bad record and for each record that is kept.
    var report: (String) -> Void { get }

    mutating func read(_ record: RecordSplitter.Record) -> Result<Imported, ImportProblem>
    /// Stores a batch in one transaction; returns the outcome of each, in order.
    func store(_ batch: [Imported]) async throws -> [Outcome]
    mutating func count(_ outcome: Outcome, of imported: Imported, line: Int)
}

/// The part of an import's input that is not stored yet.
struct ImportInput<Imported> {
    fileprivate var splitter = RecordSplitter()
    fileprivate var batch: [(line: Int, reading: Result<Imported, ImportProblem>)] = []
}

extension RecordImport {
    /// The records that share a transaction: enough to share its costs, and few enough that no other writer waits long.
    static var batchSize: Int { 200 }

    /// Takes the next bytes; all that is complete in them is stored, but for what waits for its batch to fill.
    mutating func feed(_ chunk: [UInt8]) async throws {
        try await take(input.splitter.feed(chunk))
    }

    /// Stores what is left.
    mutating func finish() async throws {
        try await take(input.splitter.finish())
        try await storeBatch()
    }

    private mutating func take(_ records: [RecordSplitter.Record]) async throws {
        for record in records {
            input.batch.append((record.line, read(record)))
            if input.batch.count == Self.batchSize { try await storeBatch() }
        }
    }

    private mutating func storeBatch() async throws {
        let good = input.batch.compactMap { item in
            if case .success(let imported) = item.reading { imported } else { nil }
        }
        var outcomes = (good.isEmpty ? [] : try await store(good))[...]
        for item in input.batch {
            switch item.reading {
            case .success(let imported):
                guard let outcome = outcomes.popFirst() else { break }
                count(outcome, of: imported, line: item.line)
            case .failure(let problem):
                tally.countBad(problem.message)
                report("line \(item.line): \(problem.message)")
            }
        }
        input.batch = []
    }
}
