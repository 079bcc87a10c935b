import Base
private import Synchronization

@testable import Storage

/// The plain refreshes of a ``TestStore`` that the health of their clients lacks.
final class UncountedRefreshes: Sendable {
    private let successes = Mutex<[String: [UncountedSuccesses]]>([:])

    func add(_ refresh: PlainRefresh, at now: Timestamp) {
        let success = UncountedSuccesses(at: now, count: 1, secretFingerprint: refresh.secretFingerprint)
        successes.withLock { $0[refresh.claimed.clientID, default: []].append(success) }
    }

    /// Runs the body of a transaction, which takes them back if it fails.
    func run<Result>(_ body: (any StoreTransaction) throws -> Result, in transaction: any StoreTransaction) throws
        -> Result
    {
        guard let transaction = transaction as? SQLiteTransaction else {
            throw StoreError(.fault, "The transaction is not one of SQLite.")
        }
        // The database runs one transaction at a time, and nothing else changes them.
        let former = successes.withLock { $0 }
        do {
            return try body(Transaction(of: transaction, with: self))
        } catch {
            successes.withLock { $0 = former }
            throw error
        }
    }

    private final class Transaction: SQLTransaction {
        private let inner: SQLiteTransaction
        private let uncounted: UncountedRefreshes

        init(of inner: SQLiteTransaction, with uncounted: UncountedRefreshes) {
            self.inner = inner
            self.uncounted = uncounted
        }

        func takeUncountedSuccesses(of clientID: String) throws -> [UncountedSuccesses] {
            uncounted.successes.withLock { $0.removeValue(forKey: clientID) ?? [] }
        }

        // An SQL transaction leaves these calls to its database. They pass through, and all others come from the
        // protocol.

        static var grantQueries: GrantQueries { SQLiteTransaction.grantQueries }
        var leaseTime: LeaseTime { inner.leaseTime }

        func rows<Element>(
            _ statement: SQLStatement,
            _ read: (inout SQLiteRow) throws(StoreError) -> Element
        ) throws(StoreError) -> [Element] {
            try inner.rows(statement, read)
        }
        func grants(_ statement: SQLStatement) throws(StoreError) -> [Grant] { try inner.grants(statement) }
        func grants(found search: GrantSearch, by values: [SQLValue]) throws(StoreError) -> [Grant] {
            try inner.grants(found: search, by: values)
        }
        func change(_ statements: [SQLStatement]) throws(StoreError) -> [Int] { try inner.change(statements) }
        func forgetGrants() { inner.forgetGrants() }
        func wipe() { inner.wipe() }

        func grant(_ id: GrantID) throws -> Grant? { try inner.grant(id) }
        func grant(ofUser userID: String, connection: ConnectionID) throws -> Grant? {
            try inner.grant(ofUser: userID, connection: connection)
        }
        func insert(_ grant: Grant) throws { try inner.insert(grant) }
        func update(_ grant: Grant) throws { try inner.update(grant) }
        func replace(_ claimed: Grant, by grant: Grant) throws -> Bool { try inner.replace(claimed, by: grant) }
        func record(_ event: GrantEvent) throws { try inner.record(event) }
        func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) throws {
            try inner.notify(content, ofUser: userID, at: now)
        }
        func clientHealth(_ clientID: String) throws -> [UInt8]? { try inner.clientHealth(clientID) }
        func setClientHealth(_ health: [UInt8], of clientID: String) throws {
            try inner.setClientHealth(health, of: clientID)
        }
    }
}
