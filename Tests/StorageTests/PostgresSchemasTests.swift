import Crypto
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Two schemas of one PostgreSQL database", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresSchemasTests {
    private let id = GrantID(rawValue: 1)

    private func address(_ url: Secret, schema: String) throws -> DatabaseAddress {
        try DatabaseAddress(url: Secret("\(url.reveal())&schema=\(schema)"))
    }

    private func open(_ url: Secret, schema: String, timeout: Duration = .seconds(60)) async throws -> PostgresStore {
        try await PostgresStore.open(url: Secret("\(url.reveal())&schema=\(schema)"), timeout: timeout)
    }

    /// Calls `body` with the stores of two schemas, which have a grant of the same id, and the URL of the database.
    private func withStores(_ body: (PostgresStore, PostgresStore, Secret) async throws -> Void) async throws {
        try await PostgresServer.withDatabase { url in
            let stores = [try await PostgresStore.open(url: url), try await open(url, schema: "user")]
            for store in stores { try await store.add([try Sample.grant(1)]) }
            try await body(stores[0], stores[1], url)
            for store in stores { await store.close() }
        }
    }

    private func postpone(_ store: any Store, _ other: GrantID? = nil) async throws {
        try await store.change(other ?? id) { $0.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start) }
    }

    @Test("Grants, claims, workers and the health of clients are apart")
    func apart() async throws {
        try await withStores { first, second, _ in
            let key = try #require(KeyID(Sample.key))
            for (store, name) in [(first, "a"), (second, "b")] {
                #expect(try await store.claim([id], dueBy: nil, owner: name, for: .seconds(30)).map(\.id) == [id])
                let report = WorkerReport(id: name, keyIDs: [key], sealingKeyID: key)
                #expect(try await store.report(report) == [report])
            }
            try await first.transact { try $0.setClientHealth([1, 2], of: "client") }
            #expect(try await first.clientHealth().count == 1)
            #expect(try await second.clientHealth().isEmpty)
            try await postpone(first)
            #expect(try await first.grant(id)?.failures == 1)
            #expect(try await second.grant(id)?.failures == 0)
            #expect(try await second.grantRowProblem() == nil)
        }
    }

    @Test("A transaction of one does not wait for the writer, the move or the migration of the other")
    func locks() async throws {
        try await withStores { first, second, url in
            let deadline = CallDeadline(in: .seconds(600))
            let standard = SchemaName.standard
            let holder = try PostgresConnection.open(try DatabaseAddress(url: url), until: deadline)
            try holder.execute("BEGIN", named: "begin", until: deadline)
            for lock in [standard.writingLock, standard.moveLock, standard.migrationLock] {
                _ = try holder.run(StatementBatch(.takeLock, .integer(lock)), until: deadline)
            }
            try await postpone(second)
            #expect(try await second.claim([id], dueBy: nil, owner: "b", for: .seconds(30)).count == 1)
            await (try open(url, schema: "third")).close()
            // The lock is one that the store of its schema does wait for.
            async let waiting: Void = postpone(first)
            let waiter = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            try await poll { try await PostgresServer.run(waiter, on: url.reveal()) == "1\n" }
            try holder.execute("ROLLBACK", named: "end", until: deadline)
            try await waiting
        }
    }

    @Test("One is moved while workers use the other, which is not marked")
    func move() async throws {
        try await withStores { first, second, url in
            let key = try #require(KeyID(Sample.key))
            _ = try await second.report(WorkerReport(id: "b", keyIDs: [key], sealingKeyID: key))
            let target = try await open(url, schema: "target")
            let copy = StoreCopy(from: first, to: target, at: "the schema target", pause: noPause)
            #expect(try await copy.run().counts[.grant] == 1)
            let error = await #expect(throws: StoreError.self) { try await postpone(first) }
            #expect(error?.code == .moved)
            for store in [second, target] {
                try await postpone(store)
                #expect(try await store.grant(id)?.failures == 1)
            }
            #expect(try await second.movedTo == nil)
            await target.close()
        }
    }

    @Test("A worker is not notified of grants that are connected in the other")
    func notifications() async throws {
        try await withStores { first, second, url in
            let deadline = CallDeadline(in: .seconds(600))
            let listeners = try [DatabaseAddress(url: url), address(url, schema: "user")].map { address in
                let connection = try PostgresConnection.open(address, until: deadline)
                let listen = SQLQuery("listen", sql: "LISTEN \(address.schema.channel)")
                _ = try connection.run(StatementBatch(listen), until: deadline)
                return connection
            }
            for (number, store) in [(2, second), (3, first), (4, second)] as [(Int64, PostgresStore)] {
                let (grant, events) = Grant.connected(
                    id: GrantID(rawValue: number),
                    userID: "user \(number)",
                    incoming: IncomingTokens(clientID: "client"),
                    dueAt: nil,
                    at: start
                )
                try await store.transact { transaction in
                    try transaction.insert(grant)
                    for event in events { try transaction.record(event) }
                }
            }
            // The server delivers notifications in the order of the commits, before its next response.
            let counts = try listeners.map { listener in
                _ = try listener.run(StatementBatch(.clock), until: deadline)
                return listener.takeNotifications()
            }
            #expect(counts == [1, 2])
        }
    }

    @Test("An error names the schema, and its advice is for it")
    func errors() async throws {
        try await withStores { first, second, url in
            try await PostgresServer.run("DROP SCHEMA \"user\" CASCADE", on: url.reveal())
            let error = await #expect(throws: StoreError.self) { try await postpone(second) }
            #expect(error?.message.contains("of the schema user of the database") == true)
            let incident = try #require(second.takeIncidents().first)
            #expect(incident.kind == .tablesLost && incident.text.contains("Restore a backup of the schema user"))
            try await postpone(first)
            #expect(first.takeIncidents().isEmpty)

            try await PostgresServer.run(
                "CREATE SCHEMA \"user\"; CREATE TABLE \"user\".grants (x int)",
                on: url.reveal()
            )
            let foreign = await #expect(throws: StoreError.self) { try await open(url, schema: "user") }
            #expect(foreign?.code == .cannotOpen)
            #expect(foreign?.message.contains("The schema user of the database") == true)
        }
    }

    @Test("A dump of one restores its tables and its function, and the store works with them")
    func dump() async throws {
        try await withStores { first, second, url in
            try await TemporaryFolder.with { folder in
                let file = folder.path("dump")
                await second.close()
                try await ChildProcess.run(["pg_dump", "--schema=user", "--file=\(file)", url.reveal()])
                try await PostgresServer.run("DROP SCHEMA \"user\" CASCADE", on: url.reveal())
                try await ChildProcess.run(
                    ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=\(file)", url.reveal()]
                )
            }
            let restored = try await open(url, schema: "user")
            try await postpone(restored)
            #expect(try await restored.grant(id)?.failures == 1)
            #expect(try await first.grant(id)?.failures == 0)
            await restored.close()
        }
    }

    @Test("What a server keeps prepared for one has another name than for the other")
    func preparedStatements() async throws {
        try await withStores { _, _, url in
            let deadline = CallDeadline(in: .seconds(600))
            let kept = SQLQuery("kept", sql: "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%version%'")
            let names = try [DatabaseAddress(url: url), address(url, schema: "user")].map { address in
                let connection = try PostgresConnection.open(address, until: deadline)
                for _ in 1...2 {
                    _ = try connection.run(StatementBatch(PostgresSchema.readVersion), until: deadline)
                }
                return try connection.run(StatementBatch(kept), until: deadline)[0].rows { $0.text() }
            }
            let name = PostgresSchema.readVersion.preparedName
            #expect(names[0].contains(name) && !names[1].contains(name))
            #expect(names.allSatisfy { $0.count == 2 }, "\(names)")
        }
    }

    @Test("A pooler lends the sessions of both to both, and nothing is mixed", .timeLimit(.minutes(10)))
    func pooler() async throws {
        try await PgBouncer.withDatabase(mode: "transaction") { url in
            let stores = [try await PostgresStore.open(url: url), try await open(url, schema: "user")]
            for store in stores { try await store.add(try Sample.grants(1...21)) }
            // No task claims this one: a claim leaves out a row that is being changed.
            let changed = GrantID(rawValue: 21)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...40 as ClosedRange<Int64> {
                    group.addTask {
                        let store = stores[Int(number % 2)]
                        try await postpone(store, changed)
                        let id = GrantID(rawValue: (number + 1) / 2)
                        let claimed = try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30))
                        #expect(claimed.map(\.id) == [id])
                    }
                }
                try await group.waitForAll()
            }
            for store in stores {
                #expect(try await store.grant(changed)?.failures == 20)
                await store.close()
            }
        }
    }
}
