import Foundation
import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import Records
@testable import RefreshWorker
@testable import Storage

@Suite("Importing a batch", .timeLimit(.minutes(10)))
struct ImportBatchTests {
    /// The lines of one batch about users in every situation, some of them twice.
    private static func lines() throws -> [String] {
        var lines = try ["new", "stored", "deleted", "left", "returned", "ended", "empty", "caf\u{e9}", "cafe\u{301}"]
            .map { try line($0, ["refresh_token": "1//of-\($0.utf8.count)", "created_at": date(of: $0)]) }
        lines += [
            "rubbish", try line("bad", ["refresh_token": "SE CRET"]),
            try line("suspended", ["state": "suspended", "reason": "access_denied"]),
            try line("disconnected", ["state": "disconnected", "reason": "user_request"]),
            try line("no refresh", ["refresh_token": nil]),
            // Once more: with another token, with the same one, of another account, and with the one before.
            try line("new", ["refresh_token": "1//second"]), try line("new", ["refresh_token": "1//second"]),
            try line("new", ["refresh_token": "1//third", "google_email": "other@example.com"]),
            try line("new", ["refresh_token": "1//second", "google_email": "other@example.com"]),
            try line("stored", ["refresh_token": "1//new"]), try line("ended", ["refresh_token": "1//again"]),
            try line("deleted", ["refresh_token": "1//again"]), try line("last"),
        ]
        return lines
    }

    /// In seconds since 1970: the user who returned did so after the disconnect at the start of ``ManualTime``.
    private static func date(of user: String) -> Double {
        Double(ManualTime().now.milliseconds) / 1000 + (user == "returned" ? 50 : -50)
    }

    /// Returns a fixture with the users of ``lines()`` who are stored before it.
    private func fixture() async throws -> ImportFixture {
        let fixture = try ImportFixture()
        let before = try ["stored", "deleted", "ended"].map { user in
            try line(user, ["refresh_token": "1//of-\(user.utf8.count)"])
        }
        let writer = fixture.writer(.keep, refreshesAtOnce: true)
        try await fixture.importText(before.joined(separator: "\n"), writer: writer)
        let now = fixture.time.now
        try await fixture.store.transact { transaction in
            _ = try AccountDeletion.delete(user: "deleted", in: transaction, at: now)
            _ = try GrantDisconnection.end(grantOfUser: "ended", in: transaction, at: now)
            for user in ["left", "returned"] { try transaction.recordDisconnect(ofUserWithoutGrant: user, at: now) }
            try transaction.insert(User(id: "empty", createdAt: now, name: "Ann"))
        }
        fixture.time.advance(by: .seconds(100))
        return fixture
    }

    @Test(
        "A batch of users in every situation has the outcomes of its lines alone",
        arguments: [ImportedGrantWriter.Existing.keep, .replace, .replaceOlder],
        [false, true]
    )
    func mixed(existing: ImportedGrantWriter.Existing, isDryRun: Bool) async throws {
        let lines = try Self.lines()
        let (batch, alone) = (try await fixture(), try await fixture())
        func writer(_ fixture: ImportFixture) -> ImportedGrantWriter {
            var writer = fixture.writer(existing, refreshesAtOnce: true)
            writer.isDryRun = isDryRun
            return writer
        }
        let tally = try await batch.importText(lines.joined(separator: "\n"), writer: writer(batch))
        var (sum, reports): (ImportTally, [String]) = (ImportTally(), [])
        for (number, line) in lines.enumerated() {
            let one = try await alone.importText(line, writer: writer(alone))
            sum.stored += one.stored
            sum.replaced += one.replaced
            sum.kept += one.kept
            sum.deletedHere += one.deletedHere
            sum.bad += one.bad
            reports += alone.reports.map { $0.replacing("line 1:", with: "line \(number + 1):") }
        }
        #expect(tally.json.bytes == sum.json.bytes)
        #expect(batch.reports == reports)
        #expect(try await StoredUser.all(in: batch) == StoredUser.all(in: alone))
        #expect(tally.stored > 0 && tally.kept > 0 && tally.deletedHere > 0 && tally.bad == 2)
    }

    @Test("A batch of new grants reads once and adds once, whatever its size")
    func statements() async throws {
        let fixture = try ImportFixture()
        let now = fixture.time.now
        for count in [1, 500] {
            let calls = try await fixture.store.transact { transaction in
                let spy = try ImportSpy(of: transaction)
                let items = (0..<count).map { number in
                    let imported = ImportedGrant(
                        userID: "user \(count) \(number)",
                        clientID: "client",
                        refreshToken: Secret("1//\(number)")
                    )
                    let (grant, events) = Grant.connected(
                        id: GrantID.random(from: SystemRandom()),
                        userID: imported.userID,
                        incoming: IncomingTokens(clientID: "client", owner: Grant.Owner(), scope: nil),
                        dueAt: nil,
                        at: now
                    )
                    return ImportedGrantBatch.Item(
                        imported: imported,
                        content: .new(NewGrant(grant: grant, events: events))
                    )
                }
                let batch = ImportedGrantBatch(
                    items: items,
                    existing: .keep,
                    recordsDates: false,
                    writes: true,
                    now: now
                )
                _ = try batch.store(in: spy)
                return spy.calls
            }
            #expect(calls == ["standings of \(count)", "insert \(count)"])
        }
    }
}

/// What is stored about one user, without the random id of the grant and what follows from it.
private struct StoredUser: Equatable {
    let user: User
    let grant: [String]
    let events: [String]

    static func all(in fixture: ImportFixture) async throws -> [StoredUser] {
        var all: [StoredUser] = []
        for user in try await fixture.store.users(after: nil, atMost: 1000) {
            guard let grant = try await fixture.store.grant(ofUser: user.id) else {
                all.append(StoredUser(user: user, grant: [], events: []))
                continue
            }
            let vault = fixture.vault
            let content = [
                grant.clientID, "\(grant.owner)", grant.scope, "\(grant.state)", "\(grant.reason)", "\(grant.since)",
                "\(grant.generation)", "\(grant.createdAt)", try vault.openRefreshToken(of: grant)?.reveal() ?? "none",
                try vault.openAccessToken(of: grant)?.reveal() ?? "none", "\(grant.accessToken?.expiresAt as Any)",
                // A suspended grant is due at a time that follows from its id.
                grant.state == .suspended ? "later" : "\(grant.dueAt as Any)",
            ]
            let events = try await fixture.store.events(of: grant.id, atMost: 100).map { event in
                "\(event.at) \(event.kind) \(event.from as Any) \(event.to) \(event.reason) \(event.generation)"
            }
            all.append(StoredUser(user: user, grant: content, events: events))
        }
        return all
    }
}

/// Notes the calls of an import, each of which takes a round trip to a server.
private final class ImportSpy: SQLTransaction {
    private let inner: SQLiteTransaction
    private(set) var calls: [String] = []

    init(of transaction: any StoreTransaction) throws {
        inner = try #require(transaction as? SQLiteTransaction)
    }

    func standings(ofUsers ids: [String]) throws -> UserStandings {
        calls.append("standings of \(ids.count)")
        return try inner.standings(ofUsers: ids)
    }

    func insert(_ additions: [NewGrant]) throws {
        calls.append("insert \(additions.count)")
        try inner.insert(additions)
    }

    static var grantQueries: GrantQueries { SQLiteTransaction.grantQueries }
    var leaseTime: LeaseTime { inner.leaseTime }

    func rows<Element>(
        _ statement: SQLStatement,
        _ read: (inout SQLiteRow) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element] {
        calls.append(statement.query.name)
        return try inner.rows(statement, read)
    }
    func grants(_ statement: SQLStatement) throws(StoreError) -> [Grant] {
        calls.append(statement.query.name)
        return try inner.grants(statement)
    }
    func grants(found search: GrantSearch, by values: [SQLValue]) throws(StoreError) -> [Grant] {
        calls.append(search.grants.name)
        return try inner.grants(found: search, by: values)
    }
    func change(_ statements: [SQLStatement]) throws(StoreError) -> [Int] {
        calls += statements.map(\.query.name)
        return try inner.change(statements)
    }
    func forgetGrants() { inner.forgetGrants() }
    func wipe() { inner.wipe() }

    func grant(_ id: GrantID) throws -> Grant? { try noted("grant") { try inner.grant(id) } }
    func grant(ofUser userID: String, connection: ConnectionID) throws -> Grant? {
        try noted("grant of user") { try inner.grant(ofUser: userID, connection: connection) }
    }
    func insert(_ grant: Grant) throws { try noted("insert") { try inner.insert(grant) } }
    func update(_ grant: Grant) throws { try noted("update") { try inner.update(grant) } }
    func record(_ event: GrantEvent) throws { try noted("record") { try inner.record(event) } }
    func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) throws {
        try noted("notify") { try inner.notify(content, ofUser: userID, at: now) }
    }
    func clientHealth(_ clientID: String) throws -> [UInt8]? {
        try noted("health") { try inner.clientHealth(clientID) }
    }
    func setClientHealth(_ health: [UInt8], of clientID: String) throws {
        try noted("set health") { try inner.setClientHealth(health, of: clientID) }
    }

    private func noted<Value>(_ call: String, _ body: () throws -> Value) rethrows -> Value {
        calls.append(call)
        return try body()
    }
}
