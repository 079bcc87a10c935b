import Base
import Crypto
import Storage
import Testing

@testable import Storage

@Suite("The schema moves forward one step at a time", .timeLimit(.minutes(10)))
struct MigrationTests {
    private let version = SQLiteQuery("version", "PRAGMA user_version")
    private let current = SQLiteMigration.all.count
    /// A step that a later version could add to the schema.
    private let next = SQLiteMigration(
        statements: "ALTER TABLE grants ADD COLUMN y INTEGER; UPDATE grants SET y = created_at + 1;"
    )
    private let first = SQLiteMigration(statements: "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (41);")
    private let second = SQLiteMigration(statements: "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1;")
    private let failing = SQLiteMigration(
        statements: "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO missing VALUES (1);"
    )

    private let now = LeaseTime(epoch: "boot", instant: BootInstant(milliseconds: 1_000_000))

    private func withConnection(_ body: (SQLiteConnection) throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            try DatabaseFile.create(folder.path("test.db"), unlessExists: false)
            try body(try SQLiteConnection(path: folder.path("test.db"), timeout: .zero))
        }
    }

    @Test("A file of an older version is upgraded, and keeps its grants")
    func upgrade() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            try await store.add(try Sample.grants(1...3))
            await store.close()
            let connection = try SQLiteConnection(path: path, timeout: .zero)
            #expect(try connection.integer(version) == Int64(current))
            var upgrades: [SchemaUpgrade] = []
            try SQLiteSchema(migrations: SQLiteMigration.all + [next]).migrate(connection, at: now) {
                upgrades.append($0)
            }
            #expect(upgrades == [SchemaUpgrade(from: current, to: current + 1)])
            #expect(try connection.integer(version) == Int64(current + 1))
            let kept = SQLiteQuery("kept", "SELECT count(*) FROM grants WHERE y = created_at + 1")
            #expect(try connection.integer(kept) == 3)
        }
    }

    @Test(
        "A version is not changed while a worker is live",
        arguments: [
            ("boot", 970_000, true), ("boot", 1_000_000, true), ("boot", 969_999, false), ("before", 1_000_000, false),
        ]
    )
    func liveWorker(report: (epoch: String, heartbeat: Int64, isAlive: Bool)) async throws {
        try await withConnection { connection in
            try SQLiteSchema().migrate(connection, at: now)
            let insert = """
                INSERT INTO workers (worker_id, epoch, heartbeat, sealing_key, keys) VALUES (?, ?, ?, 'k', 'k')
                """
            try connection.run(SQLiteQuery("worker", insert)) {
                $0.bind("4711-cafe")
                $0.bind(report.epoch)
                $0.bind(report.heartbeat)
            }
            var upgrades: [SchemaUpgrade] = []
            let schema = SQLiteSchema(migrations: SQLiteMigration.all + [next, first])
            let migrate = { try schema.migrate(connection, at: now) { upgrades.append($0) } }
            guard report.isAlive else {
                try migrate()
                #expect(upgrades == [0, 1].map { SchemaUpgrade(from: current + $0, to: current + $0 + 1) })
                return
            }
            let error = #expect(throws: StoreError.self) { try migrate() }
            #expect(error?.code == .inUse)
            let advice = "(4711-cafe). Stop every worker and cron job first, then start again."
            #expect(error?.message.contains(advice) == true)
            #expect(try connection.integer(version) == Int64(current))
            #expect(upgrades.isEmpty && !connection.isInTransaction)
            try connection.execute(SQLiteQuery("stopped", "DELETE FROM workers"))
            try migrate()
            #expect(try connection.integer(version) == Int64(current + 2))
        }
    }

    @Test("A new file is not an upgrade, and a current one is opened while workers are live")
    func noUpgrade() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            for _ in 0..<2 {
                let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot") { upgrade in
                    Issue.record("\(upgrade)")
                }
                let key = try #require(KeyID(Sample.key))
                _ = try await store.report(WorkerReport(id: "w1", keyIDs: [key], sealingKeyID: key))
                await store.close()
            }
        }
    }

    @Test("A step finds the data of the step before, and runs once")
    func steps() async throws {
        try await withConnection { connection in
            try SQLiteSchema(migrations: [first]).migrate(connection, at: now)
            #expect(try connection.integer(version) == 1)
            for _ in 0..<2 {
                try SQLiteSchema(migrations: [first, second]).migrate(connection, at: now)
            }
            #expect(try connection.integer(version) == 2)
            #expect(try connection.integer(SQLiteQuery("y", "SELECT sum(y) FROM a")) == 42)
        }
    }

    @Test("A step that fails leaves the previous version intact")
    func failure() async throws {
        try await withConnection { connection throws in
            #expect(throws: StoreError.self) {
                try SQLiteSchema(migrations: [first, failing]).migrate(connection, at: now)
            }
            #expect(try connection.integer(version) == 1)
            #expect(try connection.integer(SQLiteQuery("tables", "SELECT count(*) FROM sqlite_schema")) == 1)
            #expect(!connection.isInTransaction)
        }
    }

    @Test("The steps that a released version has are never changed")
    func released() {
        // Until the first release, a change of the first schema changes its checksum here; afterwards it needs a new
        // step.
        let checksums = SQLiteMigration.all.map { Hexadecimal.encode(Digest.sha256(Array($0.statements.utf8))) }
        #expect(
            checksums == [
                "0a4add75aeb287d7cddcd53366dcd75ed02704e46641bba4dba6cef28b10101b",
                "9bce0db26a4b1de84cb84759fd883ea229fbd1ebfe3715d047720fd832a8f36e",
                "6c380058d2cdb5054af3d9b475aedd5f7c66ee88411c0a0d526619a64fce59a5",
            ]
        )
    }
}
