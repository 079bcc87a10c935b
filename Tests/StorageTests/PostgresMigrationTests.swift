import Base
import Crypto
import Testing

@testable import Storage

@Suite("The schema on PostgreSQL moves forward", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresMigrationTests {
    /// A step that a later version could add to the schema.
    private let next = SchemaStep { _ in
        """
        ALTER TABLE refresh_worker.grants ADD COLUMN y bigint;
        UPDATE refresh_worker.grants SET y = created_at + 1;
        """
    }
    private let failing = SchemaStep { _ in
        "CREATE TABLE refresh_worker.b (x int); INSERT INTO refresh_worker.missing VALUES (1);"
    }
    private let kept = "SELECT count(*) FROM refresh_worker.grants WHERE y = created_at + 1"
    private let version = "SELECT version FROM refresh_worker.schema_version"

    /// Runs the steps, all that the program has and these, on a database with three grants.
    private func withGrants(
        _ steps: [SchemaStep],
        _ body: (_ url: Secret, _ migrate: () throws -> Void) async throws -> Void
    ) async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            try await store.add(try Sample.grants(1...3))
            await store.close()
            let deadline = CallDeadline(in: .seconds(600))
            let connection = try PostgresConnection.open(try DatabaseAddress(url: url), until: deadline)
            try await body(url) {
                try PostgresSchema(steps: SchemaStep.all + steps).migrate(connection, until: deadline)
            }
        }
    }

    private func expect(_ answer: String, to query: String, on url: Secret) async throws {
        let lines = try await PostgresServer.run(query, on: url.reveal()).split(separator: "\n")
        #expect(lines.joined() == answer)
    }

    @Test("A database of an older version is upgraded once, and keeps its grants")
    func upgrade() async throws {
        try await withGrants([next]) { url, migrate in
            try await expect("\(SchemaStep.all.count)", to: version, on: url)
            for _ in 0..<2 { try migrate() }
            try await expect("3", to: kept, on: url)
            try await expect("\(SchemaStep.all.count + 1)", to: version, on: url)
            let error = await #expect(throws: StoreError.self) { _ = try await PostgresStore.open(url: url) }
            #expect(error?.code == .newerSchema)
        }
    }

    @Test("An additive step leaves older workers at work; another one waits for them, and fences those it cannot see")
    func twoVersions() async throws {
        try await withGrants([]) { url, _ in
            let older = try await PostgresStore.open(url: url, timeout: .seconds(60))
            let key = try #require(KeyID(Sample.key))
            let report = WorkerReport(id: "old", keyIDs: [key], sealingKeyID: key)
            _ = try await older.report(report)
            let claim = { (number: Int64) in
                try await older.claim([GrantID(rawValue: number)], dueBy: nil, owner: "old", for: .seconds(30)).count
            }
            #expect(try await claim(1) == 1, "its statements are prepared")
            let deadline = CallDeadline(in: .seconds(600))
            let connection = try PostgresConnection.open(try DatabaseAddress(url: url), until: deadline)
            let additive = SchemaStep(isAdditive: true) { _ in "ALTER TABLE refresh_worker.grants ADD COLUMN z bigint;"
            }
            try PostgresSchema(steps: SchemaStep.all + [additive]).migrate(connection, until: deadline)
            #expect(try await claim(2) == 1)
            let restarted = try await PostgresStore.open(url: url, timeout: .seconds(60))
            #expect(try await restarted.grant(GrantID(rawValue: 3)) == Sample.grant(3))
            await restarted.close()

            let breaking = PostgresSchema(steps: SchemaStep.all + [additive, next])
            // On a busy machine the first report can be too old by now.
            _ = try await older.report(report)
            let refused = #expect(throws: StoreError.self) { try breaking.migrate(connection, until: deadline) }
            #expect(refused?.code == .inUse && refused?.message.contains("(old)") == true)
            #expect(try await claim(3) == 1, "the refused step has changed nothing")
            try await older.removeWorker("old")
            try breaking.migrate(connection, until: deadline)
            let fenced = await #expect(throws: StoreError.self) { _ = try await claim(1) }
            #expect(fenced?.message.contains("changed by a newer refresh-worker") == true)
            let unusable = await #expect(throws: StoreError.self) { _ = try await PostgresStore.open(url: url) }
            #expect(unusable?.code == .newerSchema)
            await older.close()
        }
    }

    @Test(
        "Every table has a primary key, so that a publication of all tables refuses nothing that the worker writes",
        arguments: [true, false]
    )
    func keys(isUpgrade: Bool) async throws {
        try await PostgresServer.withDatabase { url in
            if isUpgrade {
                let deadline = CallDeadline(in: .seconds(600))
                let connection = try PostgresConnection.open(try DatabaseAddress(url: url), until: deadline)
                try PostgresSchema(steps: [SchemaStep.all[0]]).migrate(connection, until: deadline)
            }
            try await PostgresServer.run("CREATE PUBLICATION every FOR ALL TABLES", on: url.reveal())
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            let tables = "FROM pg_class WHERE relnamespace = 'refresh_worker'::regnamespace AND relkind = 'r'"
            let hasKey = "EXISTS (SELECT 1 FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary)"
            try await expect("t", to: "SELECT count(*) > 8 \(tables)", on: url)
            try await expect("", to: "SELECT relname \(tables) AND NOT \(hasKey)", on: url)
            // A logical upgrade does not copy the positions of sequences.
            let sequences = "FROM pg_class WHERE relnamespace = 'refresh_worker'::regnamespace AND relkind = 'S'"
            try await expect("", to: "SELECT relname \(sequences)", on: url)

            try await store.add([try Sample.grant(1)])
            let successes = "INSERT INTO refresh_worker.client_successes VALUES ('client 1', 0, 3, 0)"
            try await PostgresServer.run(successes, on: url.reveal())
            let counted = try await store.storeResults { transaction in
                let counted = try transaction.takeUncountedSuccesses(of: "client 1").map(\.count)
                try transaction.setClientHealth([1], of: "client 1")
                return counted
            }
            #expect(counted == [3])
            try await expect("0", to: "SELECT count(*) FROM refresh_worker.client_successes", on: url)
            await store.close()
        }
    }

    @Test("A refresh is stored although its row was written anew in between, as by a replication")
    func rewrittenRow() async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            try await store.add([try Sample.grant(1)])
            let claimed = try #require(
                try await store.claim([GrantID(rawValue: 1)], dueBy: nil, owner: "a", for: .seconds(30)).first
            )
            try await PostgresServer.run("UPDATE refresh_worker.grants SET email = email", on: url.reveal())
            var refreshed = claimed
            refreshed.setLease(nil)
            let tokens = RefreshedTokens(accessToken: try Sample.accessToken("new", obtainedAt: start))
            _ = refreshed.refreshed(tokens, at: start) { _ in start + .seconds(3000) }
            let refresh = PlainRefresh(claimed: claimed, refreshed: refreshed, secretFingerprint: 0)
            #expect(try await store.storePlain([refresh], at: start) == [claimed.id])
            await store.close()
        }
    }

    @Test("A step waits only a second for the lock of a table, since all others wait behind it")
    func lockedTable() async throws {
        try await withGrants([next]) { url, migrate in
            let deadline = CallDeadline(in: .seconds(600))
            let other = try PostgresConnection.open(try DatabaseAddress(url: url), until: deadline)
            try other.execute(
                "BEGIN; LOCK TABLE refresh_worker.grants IN ACCESS SHARE MODE",
                named: "lock",
                until: deadline
            )
            let error = #expect(throws: StoreError.self) { try migrate() }
            #expect(error?.code == .busy && error?.message.contains("lock timeout") == true)
            #expect(deadline.remaining > .seconds(300), "the call itself could have waited for ten minutes")
            try other.execute("COMMIT", named: "unlock", until: deadline)
            try migrate()
            try await expect("3", to: kept, on: url)
        }
    }

    @Test("A step that fails leaves the previous version intact, and so does the one before it")
    func failure() async throws {
        try await withGrants([next, failing]) { url, migrate in
            #expect(throws: StoreError.self) { try migrate() }
            try await expect("\(SchemaStep.all.count)", to: version, on: url)
            try await expect("", to: "SELECT to_regclass('refresh_worker.b')", on: url)
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            #expect(try await store.grant(GrantID(rawValue: 1)) == Sample.grant(1))
            await store.close()
        }
    }
}
