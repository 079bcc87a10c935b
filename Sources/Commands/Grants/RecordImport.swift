import Worker

/// An import from a stream of bytes that stores its records in batches; bad records do not stop it.
protocol RecordImport {
    associatedtype Imported
    associatedtype Outcome

    var tally: ImportTally { get set }
    var input: ImportInput<Imported> { get set }
    /// Receives a line for each bad record and for each record that is kept.
    var report: (String) -> Void { get }

    mutating func read(_ record: RecordSplitter.Record) -> Result<Imported, ImportProblem>
    /// Stores a batch in one transaction and returns the outcomes in order.
    func store(_ batch: [Imported]) async throws -> [Outcome]
    mutating func count(_ outcome: Outcome, of imported: Imported, line: Int)
}

extension RecordImport {
    /// The number of records per transaction: enough to share its cost, few enough that other writers do not wait long.
    static var batchSize: Int { 200 }

    /// Reads the next bytes and stores the complete records in them; those of an incomplete batch wait.
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
                report("line \(item.line): \(problem.report)")
            }
        }
        input.batch = []
    }
}
