import Base
import Crypto
import Synchronization
import TestSupport
import Testing

@testable import Storage

@Suite("PostgreSQL fails and comes back", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresFaultTests {
    private let id = GrantID(rawValue: 1)

    private func withStore(_ body: (PostgresStore, Secret) async throws -> Void) async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            try await store.add([try Sample.grant(1)])
            try await body(store, url)
            await store.close()
        }
    }

    private func postpone(_ store: any Store) async throws {
        try await store.change(id) { grant in
            grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
        }
    }

    @Test("Sessions that the server ended are opened again without an error", .timeLimit(.minutes(10)))
    func endedSessions() async throws {
        try await withStore { store, url in
            for attempts in 1...3 {
                try await PostgresServer.endSessions(of: url)
                try await postpone(store)
                #expect(try await store.grant(id)?.failures == attempts)
                #expect(try await store.allDue(by: start + .seconds(9)).count == 1)
                let claimed = try await store.claim([id], dueBy: nil, owner: "a", for: .seconds(30))
                try await store.release([id: try #require(claimed.first?.lease?.claim)])
            }
        }
    }

    @Test("A commit is durable even if the database is set not to wait", arguments: ["off", "local", "on"])
    func durability(setting: String) async throws {
        try await PostgresServer.withDatabase { url in
            await (try PostgresStore.open(url: url)).close()
            let database = try #require(url.reveal().firstMatch(of: /test_\w+/)?.0)
            try await PostgresServer.run(
                """
                ALTER DATABASE \(database) SET synchronous_commit = \(setting);
                CREATE TABLE public.seen (setting text);
                CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    INSERT INTO public.seen VALUES (current_setting('synchronous_commit'));
                    RETURN NULL;
                END $$;
                CREATE TRIGGER see AFTER INSERT OR UPDATE ON refresh_worker.grants
                    FOR EACH STATEMENT EXECUTE FUNCTION public.see();
                """,
                on: url.reveal()
            )
            let store = try await PostgresStore.open(url: url)
            try await store.add([try Sample.grant(1)])
            try await postpone(store)
            await store.close()
            let seen = try await PostgresServer.run("SELECT DISTINCT setting FROM public.seen", on: url.reveal())
            #expect(seen.split(separator: "\n") == [setting == "off" ? "on" : Substring(setting)])
        }
    }

    @Test("A transaction that loses its connection before the commit writes nothing, and is unreachable")
    func lostBeforeCommit() async throws {
        try await withStore { store, url in
            let address = url.reveal()
            let ended = PostgresServer.Once()
            let error = await #expect(throws: StoreError.self) {
                try await store.transact { transaction in
                    var grant = try #require(try transaction.grant(id))
                    _ = grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
                    try transaction.update(grant)
                    if ended.isFirst() { try PostgresServer.endSessionsNow(of: address) }
                }
            }
            #expect(error?.code == .unreachable && error?.mayPass == true)
            #expect(try await store.grant(id)?.failures == 0)
            try await postpone(store)
            #expect(try await store.grant(id)?.failures == 1)
        }
    }

    @Test(
        "An error of a commit counts as certain only if its code says that nothing was stored",
        arguments: [("XX000", true), ("58000", true), ("53100", true), ("23514", false), ("40001", false)]
    )
    func refusedCommit(state: String, isUncertain: Bool) async throws {
        try await withStore { store, url in
            try await PostgresServer.run(
                """
                CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    RAISE EXCEPTION USING ERRCODE = '\(state)', MESSAGE = 'an extension does not know';
                END $$;
                CREATE CONSTRAINT TRIGGER fail AFTER UPDATE ON refresh_worker.grants
                    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.fail();
                """,
                on: url.reveal()
            )
            let attempts = Mutex(0)
            let error = await #expect(throws: StoreError.self) {
                try await store.transact { transaction in
                    // The commit of a serialisation failure is repeated, which must end.
                    let isLast = attempts.withLock { attempts in
                        attempts += 1
                        return attempts > 2
                    }
                    if isLast { throw StoreError(.busy, "repeated") }
                    var grant = try #require(try transaction.grant(id))
                    _ = grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
                    try transaction.update(grant)
                }
            }
            #expect(error?.isUncertain == isUncertain)
            #expect(attempts.withLock(\.self) == (state == "40001" ? 3 : 1))
            guard isUncertain else { return }
            #expect(error?.mayPass == true && error?.mayConcernOneRow == false)
            #expect(error?.message.contains("not known whether that took place") == true)
            #expect(error?.message.contains("SQLSTATE \(state)") == true)
            #expect(error?.message.contains("fault of refresh-worker") == false)
            #expect(error?.code == (state == "53100" ? .diskFull : state == "58000" ? .ioFailure : .unreachable))
        }
    }

    @Test("A body whose read was interrupted is run again")
    func lostWhileReading() async throws {
        try await withStore { store, url in
            let address = url.reveal()
            let ended = PostgresServer.Once()
            try await store.transact { transaction in
                _ = try transaction.user("missing")
                if ended.isFirst() { try PostgresServer.endSessionsNow(of: address) }
                var grant = try #require(try transaction.grant(id))
                _ = grant.retry(reason: .clientMismatchUnconfirmed, dueAt: start, at: start)
                try transaction.update(grant)
            }
            #expect(try await store.grant(id)?.failures == 1)
        }
    }

    @Test("A read-only database refuses writes, and accepts them when it is writable again")
    func readOnly() async throws {
        try await withStore { store, url in
            let name = try #require(url.reveal().firstMatch(of: /test_\w+/)?.0)
            let admin = try #require(PostgresServer.url)
            try await PostgresServer.run("ALTER DATABASE \(name) SET default_transaction_read_only = on", on: admin)
            try await PostgresServer.endSessions(of: url)
            let error = await #expect(throws: StoreError.self) { try await postpone(store) }
            #expect(error?.code == .readOnly && error?.mayPass == true)
            #expect(error?.message.contains("does not accept writes") == true)
            #expect(try await store.grant(id)?.failures == 0)
            // Reads work; a probe that only reads would find no fault.
            #expect(try await PostgresServer.check(store) == .readOnly)
            try await PostgresServer.run("ALTER DATABASE \(name) SET default_transaction_read_only = off", on: admin)
            try await postpone(store)
            #expect(try await store.grant(id)?.failures == 1)
            #expect(try await PostgresServer.check(store) == nil)
        }
    }

    @Test("A call waits for a restarting server; one that does not come back is unreachable")
    func restart() async throws {
        try await TemporaryFolder.with(onDisk: true) { folder in
            try await ChildProcess.run(["chmod", "755", folder.root])
            let home = folder.path("server")
            let url = try await PostgresServer.control("start", home)
            let store = try await PostgresStore.open(url: Secret(url), timeout: .seconds(300))
            let second = try await PostgresServer.openWithTimeout(Secret(url), timeout: .seconds(4))
            try await store.add([try Sample.grant(1)])
            _ = try await PostgresServer.control("stop", home)
            let error = await #expect(throws: StoreError.self) { try await postpone(second) }
            #expect(error?.code == .unreachable && error?.mayPass == true)
            async let waiting: Void = postpone(store)
            _ = try await PostgresServer.control("start", home)
            try await waiting
            #expect(try await store.grant(id)?.failures == 1)
            await store.close()
            await second.close()
            _ = try await PostgresServer.control("stop", home)
        }
    }

    @Test("A pooler in transaction mode changes nothing", .timeLimit(.minutes(10)))
    func pooler() async throws {
        try await PgBouncer.withDatabase(mode: "transaction") { url in
            let stores = [try await PostgresStore.open(url: url), try await PostgresStore.open(url: url)]
            try await stores[0].add(try Sample.grants(1...40))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 2...40 as ClosedRange<Int64> {
                    group.addTask {
                        let store = stores[Int(number % 2)]
                        try await postpone(store)
                        let id = GrantID(rawValue: number)
                        let claimed = try await store.claim([id], dueBy: nil, owner: "w", for: .seconds(30))
                        #expect(claimed.map(\.id) == [id])
                        #expect(try await store.grant(ofUser: "user \(number)")?.id == id)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await stores[0].grant(id)?.failures == 39)
            for store in stores { await store.close() }
            var facts = try await ServerFacts.read(try DatabaseAddress(url: url), time: SystemTime())
            await facts.countPooledConnections(to: try DatabaseAddress(url: url))
            #expect(facts.pooledConnections == ServerFacts.maximumWorkerConnections)
        }
    }

    @Test("A pooler in statement mode is refused by name")
    func statementPooler() async throws {
        try await PgBouncer.withDatabase(mode: "statement") { url in
            let errors = [
                await #expect(throws: StoreError.self) { try await PostgresStore.open(url: url) },
                await #expect(throws: StoreError.self) {
                    try await ServerFacts.read(try DatabaseAddress(url: url), time: SystemTime())
                },
            ]
            for error in errors {
                #expect(error?.code == .refused, "\(String(describing: error))")
                #expect(error?.message.contains("a pooler in statement mode") == true)
            }
        }
    }

    @Test("Calls that get no connection of a session pool say what is missing")
    func smallPool() async throws {
        try await PgBouncer.withDatabase(mode: "session", poolSize: 1) { url in
            let store = try await PostgresServer.openWithTimeout(url, timeout: .seconds(2))
            let messages = await withTaskGroup(of: String?.self) { group in
                for _ in 1...3 {
                    group.addTask {
                        (await #expect(throws: StoreError.self) { try await store.clientsWithDueTimes() })?.message
                    }
                }
                return await group.reduce(into: []) { $0.append($1 ?? "") }
            }
            let advice = "a default_pool_size of at least \(ServerFacts.maximumWorkerConnections)"
            #expect(messages.allSatisfy { $0.contains(advice) }, "\(messages)")
            await store.close()
            var facts = try await ServerFacts.read(try DatabaseAddress(url: url), time: SystemTime())
            await facts.countPooledConnections(to: try DatabaseAddress(url: url))
            #expect(facts.pooledConnections == 1)
        }
    }
}
