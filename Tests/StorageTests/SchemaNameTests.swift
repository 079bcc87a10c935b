import Testing

@testable import Storage

@Suite("The name of a PostgreSQL schema")
struct SchemaNameTests {
    private let other: SchemaName

    init() throws {
        other = try #require(SchemaName("user"))
    }

    @Test(
        "A statement is for the schema, and no other name in it changes",
        arguments: [
            ("SELECT id FROM refresh_worker.grants", "SELECT id FROM \"user\".grants"),
            ("SELECT to_regnamespace('refresh_worker')", "SELECT to_regnamespace('\"user\"')"),
            ("CREATE SCHEMA refresh_worker", "CREATE SCHEMA \"user\""),
            ("refresh_worker.a, refresh_worker.b", "\"user\".a, \"user\".b"),
            ("LISTEN refresh_worker_due_1", "LISTEN refresh_worker_due_1"), ("BEGIN", "BEGIN"), ("", ""),
        ]
    )
    func translation(statement: String, translation: String) {
        #expect(other.translated(statement) == translation)
        #expect(SchemaName.standard.translated(statement) == statement)
    }

    @Test("The longest name is allowed, and its channel is not too long for PostgreSQL")
    func longest() throws {
        let longest = try #require(SchemaName("_" + String(repeating: "z", count: 62)))
        #expect(longest.channel.utf8.count < 64)
        #expect(longest.identifier.utf8.count == 65)
    }

    @Test("Two schemas share no lock and no channel, and those of the standard one never change")
    func apart() {
        let standard = SchemaName.standard
        #expect(standard.migrationLock == 0x5266_576b_0001 && standard.channel == "refresh_worker_due")
        #expect(standard.writingLock == 0x5266_576b_0002 && standard.moveLock == 0x5266_576b_0003)
        // Another version of this program must use the same ones.
        #expect(other.channel == "refresh_worker_due_7d6780e4032b48f2")
        let names = (1...1000).compactMap { SchemaName("grants_\($0)") } + [standard, other]
        let locks = names.flatMap { [$0.migrationLock, $0.writingLock, $0.moveLock] }
        #expect(names.count == 1002 && Set(locks).count == 3 * 1002 && Set(names.map(\.channel)).count == 1002)
    }
}
