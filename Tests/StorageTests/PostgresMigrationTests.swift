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
            let deadline = CallDeadline(in: .seconds(60))
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
