import Clocks
import Store

/// Brings users in from a stream of bytes, in batches, whatever is wrong with some of them.
struct UserImport: RecordImport {
    /// What became of one user.
    private enum Outcome: Sendable {
        case stored
        case replaced
        case kept
        case deleted
        /// Another user has the same account at Google.
        case conflict
    }

    let store: any AccountStore
    let replacesExisting: Bool
    let time: any TimeSource
    /// Where bad lines and kept users are reported, a line each.
    let report: (String) -> Void

    private(set) var tally = GrantImport.Tally()
    private var splitter = RecordSplitter()
    private var batch: [(line: Int, user: ImportedUser)] = []

    init(
        store: any AccountStore,
        replacesExisting: Bool,
        time: any TimeSource,
        report: @escaping (String) -> Void
    ) {
        self.store = store
        self.replacesExisting = replacesExisting
        self.time = time
        self.report = report
    }

    mutating func feed(_ chunk: [UInt8]) async throws {
        try await take(splitter.feed(chunk))
    }

    mutating func finish() async throws {
        try await take(splitter.finish())
        try await storeBatch()
    }

    private mutating func take(_ records: [RecordSplitter.Record]) async throws {
        for record in records {
            do throws(ImportProblem) {
                batch.append((record.line, try ImportedUser(from: record, at: time.now)))
            } catch {
                reject("line \(record.line): \(error.message)")
            }
            if batch.count == GrantImport.batchSize { try await storeBatch() }
        }
    }

    private mutating func storeBatch() async throws {
        let users = batch.map(\.user)
        guard !users.isEmpty else { return }
        let now = time.now
        let replaces = replacesExisting
        let outcomes = try await store.transact { transaction in
            try users.map { try Self.store($0, in: transaction, replaces: replaces, at: now) }
        }
        for (item, outcome) in zip(batch, outcomes) {
            let user = DisplayedText(item.user.id)
            switch outcome {
            case .stored: tally.stored += 1
            case .replaced: tally.replaced += 1
            case .kept:
                tally.kept += 1
                report("line \(item.line): user \(user) is stored already: kept")
            case .deleted: reject("line \(item.line): user \(user) was deleted: not stored while tokens may live")
            case .conflict: reject("line \(item.line): another user has the same google_user_id as \(user)")
            }
        }
        batch = []
    }

    private static func store(
        _ imported: ImportedUser,
        in transaction: any StoreTransaction,
        replaces: Bool,
        at now: Timestamp
    ) throws -> Outcome {
        let stored = try transaction.user(imported.id)
        let user = imported.user(over: stored, at: now)
        do {
            guard let stored else {
                try transaction.insert(user)
                return .stored
            }
            guard !stored.isDeleted else { return .deleted }
            guard replaces || stored.isPlaceholder else { return .kept }
            try transaction.update(user)
            return stored.isPlaceholder ? .stored : .replaced
        } catch let error as StoreError where error.code == .conflict {
            return .conflict
        }
    }

    private mutating func reject(_ problem: String) {
        tally.bad += 1
        report(problem)
    }
}
