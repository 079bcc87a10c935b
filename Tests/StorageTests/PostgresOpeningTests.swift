import Crypto
import Testing

@testable import Storage

@Suite("Opening a PostgreSQL database", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresOpeningTests {
    private func failure(
        _ url: Secret,
        timeout: Duration = .seconds(60),
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> StoreError {
        let error = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) {
            await (try PostgresStore.open(url: url, timeout: timeout)).close()
        }
        return try #require(error, sourceLocation: sourceLocation)
    }

    private func changed(_ url: Secret, _ text: String, to other: String) -> Secret {
        Secret(url.reveal().replacing(text, with: other))
    }

    @Test("A missing server, a missing database and a missing user have different errors")
    func connecting() async throws {
        let url = Secret(try #require(PostgresServer.url))
        let nowhere = try await failure(
            Secret("postgres://user:hunter2@/base?host=/nonexistent"),
            timeout: .seconds(2)
        )
        #expect(nowhere.code == .unreachable && nowhere.mayPass)
        #expect(nowhere.message.contains("cannot be reached") && !nowhere.message.contains("hunter2"))
        let refused = try await failure(Secret("postgres://user@127.0.0.1:1/base"), timeout: .seconds(2))
        #expect(refused.code == .unreachable && refused.message.contains("port 1"))
        let unknown = try await failure(changed(url, "/postgres?", to: "/missing?"))
        #expect(unknown.code == .refused && unknown.mayPass && unknown.message.contains("3D000"))
        let stranger = try await failure(changed(url, "postgres@", to: "stranger@"))
        #expect(stranger.code == .refused && stranger.message.contains("28000"))
    }

    @Test(
        "A setting that libpq refuses ends the start, since waiting does not fix it",
        arguments: [
            "sslmode=bogus", "service=nosuch", "target_session_attrs=bogus", "keepalives_idle=bogus",
            "channel_binding=bogus", "host=a,b,c&port=1,2",
        ]
    )
    func wrongSetting(setting: String) async throws {
        let host = setting.hasPrefix("host") ? "" : "127.0.0.1:1"
        let error = try await failure(Secret("postgres://user:hunter2@\(host)/base?\(setting)"))
        #expect(error.code == .refused, "\(error)")
        #expect(error.message.contains("PGSSLMODE") && !error.message.contains("hunter2"), "\(error)")
    }

    @Test("The error for a wrong password says so, without the password")
    func password() async throws {
        let url = try #require(PostgresServer.url)
        try await PostgresServer.run(
            """
            DO $$ BEGIN CREATE ROLE locked LOGIN PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN NULL; END $$
            """,
            on: url
        )
        let error = try await failure(changed(Secret(url), "postgres@", to: "locked:hunter2@"))
        #expect(error.code == .refused && error.message.contains("28P01") && !error.message.contains("hunter2"))
    }

    @Test("A schema of a newer version, and one of another program, are left alone")
    func foreignSchemas() async throws {
        try await PostgresServer.withDatabase { url in
            await (try PostgresStore.open(url: url)).close()
            try await PostgresServer.run("UPDATE refresh_worker.schema_version SET version = 99", on: url.reveal())
            let newer = try await failure(url)
            #expect(newer.code == .newerSchema && newer.message.contains("99") && !newer.mayPass)
            #expect(newer.message.contains("or a development build from before the first release"))
        }
        try await PostgresServer.withDatabase { url in
            try await PostgresServer.run(
                "CREATE SCHEMA refresh_worker; CREATE TABLE refresh_worker.grants (x int)",
                on: url.reveal()
            )
            let foreign = try await failure(url)
            #expect(foreign.code == .cannotOpen && foreign.message.contains("another program's"))
            let columns = try await PostgresServer.run("SELECT * FROM refresh_worker.grants", on: url.reveal())
            #expect(columns.isEmpty)
        }
    }

    @Test(
        "The error for a user who cannot create the schema names the grant, and the schema suffices",
        arguments: [SchemaName.standard.text, "user"]
    )
    func permissions(schema: String) async throws {
        try await PostgresServer.withDatabase { url in
            let name = "plain_\(UInt32.random(in: 0...UInt32.max))"
            try await PostgresServer.run("CREATE ROLE \(name) LOGIN", on: url.reveal())
            let plain = Secret(changed(url, "postgres@", to: "\(name)@").reveal() + "&schema=\(schema)")
            let error = try await failure(plain)
            #expect(error.code == .cannotOpen && !error.mayPass && error.message.contains("the schema \(schema) in"))
            let remedy = try #require(error.message.firstMatch(of: /run: (.*)$/)?.1)
            try await PostgresServer.run(String(remedy), on: url.reveal())
            let store = try await PostgresStore.open(url: plain)
            try await store.add([try Sample.grant(1)])
            await store.close()
            try await PostgresServer.run("DROP OWNED BY \(name)", on: url.reveal())
            try await PostgresServer.run("DROP ROLE \(name)", on: url.reveal())
        }
    }

    @Test("While a dump holds a table, a worker starts with the tables as they are, and a later start changes them")
    func upgradeDuringDump() async throws {
        try await PostgresServer.withDatabase { url in
            let deadline = CallDeadline(in: .seconds(600))
            let address = try DatabaseAddress(url: url)
            let dump = try PostgresConnection.open(address, until: deadline)
            try PostgresSchema(steps: [SchemaStep.all[0]]).migrate(dump, until: deadline)
            let lock = "BEGIN; LOCK TABLE refresh_worker.client_successes IN ACCESS SHARE MODE"
            try dump.execute(lock, named: "lock", until: deadline)
            let store = try await PostgresStore.open(url: url)
            #expect(store.takeIncidents().map(\.kind) == [.changeWaits])
            try await store.add([try Sample.grant(1)])
            await store.close()

            try dump.execute("ROLLBACK", named: "end", until: deadline)
            let later = try await PostgresStore.open(url: url)
            #expect(later.takeIncidents().isEmpty)
            await later.close()
            let columns = "SELECT id FROM refresh_worker.client_successes"
            try dump.execute(columns, named: "columns", until: deadline)
        }
    }

    @Test(
        "A user who cannot upgrade the tables of another uses them as they are, and is told what suffices",
        arguments: [SchemaName.standard.text, "user"]
    )
    func upgradeByAnother(schema: String) async throws {
        try await PostgresServer.withDatabase { url in
            let (owner, name) = (
                "owner_\(UInt32.random(in: 0...UInt32.max))", "plain_\(UInt32.random(in: 0...UInt32.max))"
            )
            try await PostgresServer.run(
                """
                CREATE ROLE \(owner) LOGIN; CREATE ROLE \(name) LOGIN;
                CREATE SCHEMA "\(schema)" AUTHORIZATION \(owner); GRANT ALL ON SCHEMA "\(schema)" TO \(name)
                """,
                on: url.reveal()
            )
            let deadline = CallDeadline(in: .seconds(600))
            let inSchema = Secret(url.reveal() + "&schema=\(schema)")
            let address = try DatabaseAddress(url: changed(inSchema, "postgres@", to: "\(owner)@"))
            let connection = try PostgresConnection.open(address, until: deadline)
            try PostgresSchema(steps: [SchemaStep.all[0]]).migrate(connection, until: deadline)
            let tables = "GRANT ALL ON ALL TABLES IN SCHEMA \"\(schema)\" TO \(name)"
            try await PostgresServer.run(tables, on: url.reveal())

            let plain = changed(inSchema, "postgres@", to: "\(name)@")
            let older = try await PostgresStore.open(url: plain)
            let incident = try #require(older.takeIncidents().first)
            await older.close()
            #expect(incident.kind == .changeWaits && incident.text.contains("because \(owner) owns its tables"))
            let remedy = try #require(incident.text.firstMatch(of: /run: (.*)$/)?.1)
            try await PostgresServer.run(String(remedy), on: url.reveal())
            let store = try await PostgresStore.open(url: plain)
            #expect(store.takeIncidents().isEmpty)
            try await store.add([try Sample.grant(1)])
            await store.close()
            try await PostgresServer.run("DROP OWNED BY \(owner), \(name) CASCADE", on: url.reveal())
            try await PostgresServer.run("DROP ROLE \(owner), \(name)", on: url.reveal())
        }
    }

    @Test("Many workers may open a new database at once")
    func together() async throws {
        try await PostgresServer.withDatabase { url in
            let stores = try await withThrowingTaskGroup(of: PostgresStore.self) { group in
                for _ in 0..<6 { group.addTask { try await PostgresStore.open(url: url) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            try await stores[0].add([try Sample.grant(1)])
            for store in stores {
                #expect(try await store.grant(GrantID(rawValue: 1)) != nil)
                await store.close()
            }
        }
    }
}
