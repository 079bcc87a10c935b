import Base
import Storage
private import Synchronization

/// The plain refreshes of a ``TestStore`` that the health of their clients lacks.
final class UncountedRefreshes: Sendable {
    private let successes = Mutex<[String: [UncountedSuccesses]]>([:])

    func add(_ refresh: PlainRefresh, at now: Timestamp) {
        let success = UncountedSuccesses(at: now, count: 1, clientSecret: refresh.clientSecret)
        successes.withLock { $0[refresh.claimed.clientID, default: []].append(success) }
    }

    /// Runs the body of a transaction, which takes them back if it fails.
    func run<Result>(_ body: (any StoreTransaction) throws -> Result, in transaction: any StoreTransaction) throws
        -> Result
    {
        // The database runs one transaction at a time, and nothing else changes them.
        let former = successes.withLock { $0 }
        do {
            return try body(Transaction(inner: transaction, uncounted: self))
        } catch {
            successes.withLock { $0 = former }
            throw error
        }
    }

    private struct Transaction: StoreTransaction {
        let inner: any StoreTransaction
        let uncounted: UncountedRefreshes

        func takeUncountedSuccesses(of clientID: String) throws -> [UncountedSuccesses] {
            uncounted.successes.withLock { $0.removeValue(forKey: clientID) ?? [] }
        }

        // The other calls pass through.

        var leaseTime: LeaseTime { inner.leaseTime }

        func grant(_ id: GrantID) throws -> Grant? { try inner.grant(id) }
        func grant(ofUser userID: String) throws -> Grant? { try inner.grant(ofUser: userID) }
        func grants(sharingAccountWith grant: Grant) throws -> [Grant] { try inner.grants(sharingAccountWith: grant) }
        func grants(ofGoogleUser googleUserID: String) throws -> [Grant] {
            try inner.grants(ofGoogleUser: googleUserID)
        }
        func issuedTokens(toAccount owner: Grant.Owner, at now: Timestamp) throws -> [IssuedTokens] {
            try inner.issuedTokens(toAccount: owner, at: now)
        }
        func grants(withRefreshTokenMark mark: TokenMark) throws -> [Grant] {
            try inner.grants(withRefreshTokenMark: mark)
        }
        func lastConnection(of id: GrantID) throws -> Timestamp? { try inner.lastConnection(of: id) }
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
        func user(_ id: String) throws -> User? { try inner.user(id) }
        func user(withGoogleUserID googleUserID: String) throws -> User? {
            try inner.user(withGoogleUserID: googleUserID)
        }
        func users(withEmail email: String) throws -> [User] { try inner.users(withEmail: email) }
        func insert(_ user: User) throws { try inner.insert(user) }
        func update(_ user: User) throws { try inner.update(user) }
        func move(user id: String, to other: String) throws { try inner.move(user: id, to: other) }
        func session(_ id: SessionID) throws -> Session? { try inner.session(id) }
        func insert(_ session: Session) throws { try inner.insert(session) }
        func update(_ session: Session) throws { try inner.update(session) }
        func endSession(_ id: SessionID) throws { try inner.endSession(id) }
        func endSessions(ofUser userID: String) throws -> Int { try inner.endSessions(ofUser: userID) }
        func record(securityEvent identifier: String, at now: Timestamp) throws -> Bool {
            try inner.record(securityEvent: identifier, at: now)
        }
        func hasRecorded(securityEvent identifier: String) throws -> Bool {
            try inner.hasRecorded(securityEvent: identifier)
        }
    }
}
