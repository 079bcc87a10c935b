import Crypto
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("The schema moves forward one step at a time", .timeLimit(.minutes(10)))
struct MigrationTests {
    private let version = SQLQuery("version", sql: "PRAGMA user_version")
    private let current = SchemaStep.all.count
    /// A step that a later version could add to the schema.
    private let next = SchemaStep { _ in
        "ALTER TABLE grants ADD COLUMN y INTEGER; UPDATE grants SET y = created_at + 1;"
    }
    private let first = SchemaStep { _ in "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (41);" }
    private let second = SchemaStep { _ in "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1;" }
    private let failing = SchemaStep { _ in "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO missing VALUES (1);" }

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
            var upgrades: [[Int]] = []
            try SQLiteSchema(steps: SchemaStep.all + [next]).migrate(connection, at: now) {
                upgrades.append([$0, $1])
            }
            #expect(upgrades == [[current, current + 1]])
            #expect(try connection.integer(version) == Int64(current + 1))
            let kept = SQLQuery("kept", sql: "SELECT count(*) FROM grants WHERE y = created_at + 1")
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
            try connection.run(SQLQuery("worker", sql: insert)) {
                $0.bind("4711-cafe")
                $0.bind(report.epoch)
                $0.bind(report.heartbeat)
            }
            var upgrades: [[Int]] = []
            let schema = SQLiteSchema(steps: SchemaStep.all + [next, first])
            let migrate = { try schema.migrate(connection, at: now) { upgrades.append([$0, $1]) } }
            guard report.isAlive else {
                try migrate()
                #expect(upgrades == [0, 1].map { [current + $0, current + $0 + 1] })
                return
            }
            let error = #expect(throws: StoreError.self) { try migrate() }
            #expect(error?.code == .inUse)
            let advice = "(4711-cafe). Stop every worker and cron job first, then start again."
            #expect(error?.message.contains(advice) == true)
            #expect(try connection.integer(version) == Int64(current))
            #expect(upgrades.isEmpty && !connection.isInTransaction)
            try connection.execute(SQLQuery("stopped", sql: "DELETE FROM workers"))
            try migrate()
            #expect(try connection.integer(version) == Int64(current + 2))
        }
    }

    @Test("An additive step is made under live workers, and programs of the version before go on using the file")
    func twoVersions() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let open = { try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot") }
            let older = try open()
            try await older.add(try Sample.grants(1...3))
            let key = try #require(KeyID(Sample.key))
            _ = try await older.report(WorkerReport(id: "old", keyIDs: [key], sealingKeyID: key))
            let time = try await older.leaseTime()
            let additive = SchemaStep(isAdditive: true) { _ in "ALTER TABLE grants ADD COLUMN z INTEGER;" }
            let connection = try SQLiteConnection(path: path, timeout: .seconds(10))
            try SQLiteSchema(steps: SchemaStep.all + [additive]).migrate(connection, at: time)
            #expect(try connection.integer(version) == Int64(current + 1))

            let ids = (1...3).map { GrantID(rawValue: $0) }
            #expect(try await older.claim(ids, dueBy: nil, owner: "old", for: .seconds(30)).count == 3)
            let restarted = try open()
            #expect(try await restarted.grant(ids[0])?.userID == Sample.grant(1).userID)
            let copy = await #expect(throws: StoreError.self) { try await restarted.markMoved(to: "a copy") }
            #expect(copy?.code == .newerSchema)
            await restarted.close()

            let breaking = SQLiteSchema(steps: SchemaStep.all + [additive, next])
            let refused = #expect(throws: StoreError.self) { try breaking.migrate(connection, at: time) }
            #expect(refused?.code == .inUse)
            await older.close()
            try connection.execute(SQLQuery("stopped", sql: "DELETE FROM workers"))
            try breaking.migrate(connection, at: time)
            #expect(throws: StoreError.self) { try open() }
        }
    }

    @Test("A new file is not an upgrade, and a current one is opened while workers are live")
    func noUpgrade() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            for _ in 0..<2 {
                let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot") { from, to in
                    Issue.record("from \(from) to \(to)")
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
            try SQLiteSchema(steps: [first]).migrate(connection, at: now)
            #expect(try connection.integer(version) == 1)
            for _ in 0..<2 {
                try SQLiteSchema(steps: [first, second]).migrate(connection, at: now)
            }
            #expect(try connection.integer(version) == 2)
            #expect(try connection.integer(SQLQuery("y", sql: "SELECT sum(y) FROM a")) == 42)
        }
    }

    @Test("A step that fails leaves the previous version intact")
    func failure() async throws {
        try await withConnection { connection throws in
            #expect(throws: StoreError.self) {
                try SQLiteSchema(steps: [first, failing]).migrate(connection, at: now)
            }
            #expect(try connection.integer(version) == 1)
            #expect(try connection.integer(SQLQuery("tables", sql: "SELECT count(*) FROM sqlite_schema")) == 1)
            #expect(!connection.isInTransaction)
        }
    }

    @Test(
        "The steps that a released version has are never changed",
        arguments: [
            (
                SQLDialect.sqlite,
                [
                    "a903ce266201537434f16c6ac4bb0b5d6bc97e7bb24948302e48dd9bbc161e7f",
                    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                ]
            ),
            (
                .postgres,
                [
                    "f897eeadac1a05dee3e3a591b6642e459fb848dc03d103d18f32b7fdaeafc904",
                    "03d132f33e41aaf63ecf9b9e769503db5bdde75a0c02d9835f73b6ea002b6dbe",
                ]
            ),
        ]
    )
    func released(dialect: SQLDialect, checksums: [String]) {
        // Until the first release, a change of the first schema changes its checksum here; afterwards it needs a new
        // step.
        let found = SchemaStep.all.map {
            Hexadecimal.encode(Digest.sha256(Array($0.statements(for: dialect).utf8)))
        }
        #expect(found == checksums)
    }
}
