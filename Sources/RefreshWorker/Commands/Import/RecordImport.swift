import Base
import Storage

/// The results of an import so far.
struct ImportTally: Equatable, Sendable {
    /// The limit of reasons that are counted separately.
    ///
    /// Others are counted together, so that memory stays bounded.
    private static let maximumReasons = 20

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
    /// Records of users who were deleted here, which are not stored again.
    var deletedHere = 0
    var bad = 0
    private(set) var reasons: [String: Int] = [:]
    private(set) var otherReasons = 0

    var read: Int { stored + completed + replaced + kept + unchanged + deletedHere + bad }

    mutating func countBad(_ reason: String) {
        bad += 1
        if reasons[reason] != nil || reasons.count < Self.maximumReasons {
            reasons[reason, default: 0] += 1
        } else {
            otherReasons += 1
        }
    }

    /// The numbers for people, without those that only an import of users has unless `comparing`.
    func counts(isDryRun: Bool, comparing: Bool = false) -> String {
        func count(_ number: Int, _ done: String, _ planned: String) -> String {
            "\(number) \(isDryRun ? planned : done)"
        }
        let completed = comparing ? [count(completed, "completed", "to complete")] : []
        let unchanged = comparing ? ["\(unchanged) unchanged"] : []
        let replaced = [count(replaced, "replaced", "to replace"), count(kept, "kept", "to keep")]
        let deletedHere = deletedHere > 0 ? ["\(deletedHere) of users deleted here"] : []
        return ([count(stored, "stored", "to store")] + completed + replaced + unchanged + deletedHere + ["\(bad) bad"])
            .joined(separator: ", ")
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
        line.field("deleted_here", deletedHere)
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

/// An item of an import's input: its place, such as `line 5`, and its content.
typealias ImportReading<Imported> = (place: String, result: Result<Imported, InputError>)

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

extension Array {
    /// The content of the good ones of these items.
    func imported<Imported>() -> [Imported] where Element == ImportReading<Imported> {
        compactMap { item in
            if case .success(let imported) = item.result { imported } else { nil }
        }
    }
}

/// One run of any import, from its file to the exit code.
struct ImportRun {
    let file: InputFile
    let progress: ImportProgress
    let isDryRun: Bool
    let isJSON: Bool
    /// Ends what the import used, before the results are reported.
    let close: () async -> Void

    func report(_ line: String) { progress.writeLine("refresh-worker: \(line)") }

    func perform(_ start: some RecordImport) async throws -> ExitCode {
        var records = start
        var failure: CommandError?
        do {
            try await feed(&records)
        } catch let error as StoreError {
            failure = CommandError(await CommandContext.confirmed(error))
        } catch {
            failure = CommandError(error)
        }
        await close()
        let tally = records.tally
        (tally.summaryOfReasons + records.remarks + [records.sentence(isDryRun: isDryRun)]).forEach(report)
        if isJSON { Output.standard.line(records.json.bytes) }
        guard let failure else { return tally.bad == 0 ? .success : .badData }
        guard tally.read > 0 else { throw failure }
        throw CommandError(
            failure.exitCode,
            """
            \(failure.message)
            the import stopped there; the records counted above are stored; start the same import again to \
            continue: it keeps stored records
            """
        )
    }

    private func feed(_ records: inout some RecordImport) async throws {
        while true {
            let chunk: [UInt8]
            do {
                chunk = try await file.next()
            } catch {
                // The complete records before the failure are good.
                try await records.finish()
                throw error
            }
            guard !chunk.isEmpty else { break }
            try await records.feed(chunk)
            progress.show(records.tally, done: file.fractionRead)
        }
        try await records.finish()
    }
}
