import Clocks
import Secrets
import Store
import Testing

@testable import SQLiteStore

@Suite("The schema moves forward one step at a time", .timeLimit(.minutes(10)))
struct MigrationTests {
    private let version = Query("version", "PRAGMA user_version")
    private let first = Migration(statements: "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (41);")
    private let second = Migration(statements: "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1;")
    private let failing = Migration(statements: "CREATE TABLE b (x INTEGER) STRICT; INSERT INTO missing VALUES (1);")

    private let now = LeaseTime(epoch: "boot", instant: BootInstant(milliseconds: 1_000_000))

    private func withConnection(_ body: (Connection) throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            try DatabaseFile.create(folder.path("test.db"), unlessThere: false)
            try body(try Connection(path: folder.path("test.db"), patience: .zero))
        }
    }

    @Test("Every older version is upgraded to the current one", arguments: 0..<Migration.all.count)
    func fromOlderVersions(older: Int) async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            try DatabaseFile.create(path, unlessThere: false)
            try Schema(migrations: Array(Migration.all.prefix(older))).migrate(
                try Connection(path: path, patience: .zero),
                at: now
            )
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            try await store.add([try Sample.grant(1)])
            #expect(try await store.integrityProblems().isEmpty)
            await store.close()
            #expect(try Connection(path: path, patience: .zero).integer(version) == Int64(Migration.all.count))
        }
    }

    @Test("Users and grants of the first version are there after the second, the tokens without marks")
    func firstVersionWithRows() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let grant = try Sample.grant(1)
            let token = try #require(grant.refreshToken?.sealed)
            try DatabaseFile.create(path, unlessThere: false)
            do {
                let connection = try Connection(path: path, patience: .zero)
                try Schema(migrations: Array(Migration.all.prefix(1))).migrate(connection, at: now)
                try connection.run(Query("user", "INSERT INTO users VALUES (?, ?)")) {
                    $0.bind(grant.userID)
                    $0.bind(grant.createdAt)
                }
                try connection.run(
                    Query(
                        "grant",
                        """
                        INSERT INTO grants (
                            id, user_id, created_at, client_id, scope, state, reason, since, generation, due_at, attempts,
                            is_proven, refresh_key, refresh_token
                        ) VALUES (1, ?1, ?2, 'client 1', 'openid email', 'active', 'none', ?2, 1, ?2 + 1000, 0, 0, ?3, ?4)
                        """
                    )
                ) {
                    $0.bind(grant.userID)
                    $0.bind(grant.createdAt)
                    $0.bind(token.keyID.description)
                    $0.bind(token.bytes)
                }
            }
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            #expect(try await store.user(grant.userID) == User(id: grant.userID, createdAt: grant.createdAt))
            let expected = try Sample.grant(1, accessToken: nil)
            #expect(try await store.grant(ofUser: grant.userID) == expected)
            #expect(try await store.grantsWithoutMarks(after: nil, atMost: 10) == [expected])
            try await store.startSessions([Sample.session(1, user: grant.userID)])
            #expect(try await store.integrityProblems().isEmpty)
            await store.close()
        }
    }

    @Test("A grant of the second version keeps its history and its day of use")
    func secondVersionWithLease() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            try DatabaseFile.create(path, unlessThere: false)
            do {
                let connection = try Connection(path: path, patience: .zero)
                try connection.execute(Query("as in use", "PRAGMA foreign_keys = ON"))
                try Schema(migrations: Array(Migration.all.prefix(2))).migrate(connection, at: now)
                let token = try Sample.sealed("refresh")
                try connection.execute(Query("user", "INSERT INTO users (user_id, created_at) VALUES ('u', 5)"))
                try connection.run(
                    Query(
                        "grant",
                        """
                        INSERT INTO grants (
                            id, user_id, created_at, client_id, scope, state, reason, since, generation, due_at, attempts,
                            is_proven, last_success_at, lease_owner, lease_claim, lease_epoch, lease_until, refresh_key,
                            refresh_token
                        ) VALUES (
                            1, 'u', 5, 'client 1', 'openid', 'active', 'none', 5, 1, 7, 0, 1, 864000000, 'worker', 42, 'boot',
                            9000000, ?1, ?2
                        )
                        """
                    )
                ) {
                    $0.bind(token.keyID.description)
                    $0.bind(token.bytes)
                }
                try connection.execute(
                    Query(
                        "event",
                        """
                        INSERT INTO grant_events (grant_id, at, kind, from_state, to_state, reason, generation)
                        VALUES (1, 5, 'connected', NULL, 'active', 'none', 1)
                        """
                    )
                )
            }
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            let grant = try #require(try await store.grant(ofUser: "u"))
            // No worker is live while a schema is changed, so no request is in flight.
            #expect(grant.lease == nil)
            #expect(try await store.events(of: grant.id, atMost: 9).count == 1)
            #expect(try await store.integrityProblems().isEmpty)
            await store.close()
            let connection = try Connection(path: path, patience: .zero)
            #expect(try connection.integer(Query("day", "SELECT used_on FROM grants")) == 10)
            #expect(try connection.rows(Query("loose", "PRAGMA foreign_key_check"), read: { _ in }).isEmpty)
        }
    }

    @Test("A notice of an older version keeps its number, and no number is used twice")
    func olderNotice() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            try DatabaseFile.create(path, unlessThere: false)
            do {
                let connection = try Connection(path: path, patience: .zero)
                try Schema(migrations: Array(Migration.all.dropLast())).migrate(connection, at: now)
                for (number, accepted) in [(7, "NULL"), (8, "NULL"), (9, "5")] {
                    try connection.execute(
                        Query(
                            "notice",
                            """
                            INSERT INTO notices (
                                seq, nonce, grant_id, user_id, at, from_state, to_state, reason, pending_since, attempts,
                                next_try_at, accepted_at
                            ) VALUES (
                                \(number), 1, 3, 'u', 5, 'active', 'disconnected', 'invalid_grant', 5, 0,
                                \(number == 7 ? "5" : "NULL"), \(accepted)
                            )
                            """
                        )
                    )
                }
                try connection.execute(Query("sweep", "DELETE FROM notices WHERE seq = 9"))
            }
            let time = ManualTime()
            let store = try SQLiteStore(path: path, timeSource: time, bootID: "boot", keepsNotices: true)
            let due = try await store.dueNotices(at: start, atMost: 9)
            #expect(due.map(\.sequence) == [7])
            let content = Notice.Content.connection(
                of: GrantID(rawValue: 3),
                from: .active,
                to: .disconnected,
                reason: .invalidGrant
            )
            #expect(due.map(\.content) == [content])
            try await store.transact { try $0.notify(.userDeleted, ofUser: "v", at: start) }
            #expect(try await store.dueNotices(at: start, atMost: 9).map(\.sequence) == [7, 10])
            await store.close()
        }
    }

    @Test(
        "A version is not changed while a worker is live",
        arguments: 1..<Migration.all.count,
        [("boot", 970_000, true), ("boot", 1_000_000, true), ("boot", 969_999, false), ("before", 1_000_000, false)]
    )
    func liveWorker(older: Int, report: (epoch: String, heartbeat: Int64, isAlive: Bool)) async throws {
        try await withConnection { connection in
            try Schema(migrations: Array(Migration.all.prefix(older))).migrate(connection, at: now)
            let insert = """
                INSERT INTO workers (worker_id, epoch, heartbeat, sealing_key, keys) VALUES (?, ?, ?, 'k', 'k')
                """
            try connection.run(Query("worker", insert)) {
                $0.bind("4711-cafe")
                $0.bind(report.epoch)
                $0.bind(report.heartbeat)
            }
            var told: [SchemaUpgrade] = []
            let migrate = { try Schema().migrate(connection, at: now) { told.append($0) } }
            guard report.isAlive else {
                try migrate()
                #expect(told == (older..<Migration.all.count).map { SchemaUpgrade(from: $0, to: $0 + 1) })
                return
            }
            let error = #expect(throws: StoreError.self) { try migrate() }
            #expect(error?.code == .inUse)
            let advice = "(4711-cafe). Stop every worker and cron job first, then start again."
            #expect(error?.message.contains(advice) == true)
            #expect(try connection.integer(version) == Int64(older))
            #expect(told.isEmpty && !connection.isInTransaction)
            try connection.execute(Query("stopped", "DELETE FROM workers"))
            try Schema().migrate(connection, at: now)
            #expect(try connection.integer(version) == Int64(Migration.all.count))
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
            try Schema(migrations: [first]).migrate(connection, at: now)
            #expect(try connection.integer(version) == 1)
            for _ in 0..<2 {
                try Schema(migrations: [first, second]).migrate(connection, at: now)
            }
            #expect(try connection.integer(version) == 2)
            #expect(try connection.integer(Query("y", "SELECT sum(y) FROM a")) == 42)
        }
    }

    @Test("A step that fails leaves the previous version intact")
    func failure() async throws {
        try await withConnection { connection throws in
            #expect(throws: StoreError.self) { try Schema(migrations: [first, failing]).migrate(connection, at: now) }
            #expect(try connection.integer(version) == 1)
            #expect(try connection.integer(Query("tables", "SELECT count(*) FROM sqlite_schema")) == 1)
            #expect(!connection.isInTransaction)
        }
    }
}
