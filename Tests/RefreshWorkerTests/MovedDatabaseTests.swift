import Crypto
import Status
import Storage
import TestSupport
import Testing

@testable import RefreshWorker

@Suite("A database that was moved", .timeLimit(.minutes(10)))
struct MovedDatabaseTests {
    private func moved(_ body: (OperatorFixture, CommandContext) async throws -> Void) async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            _ = try await context.run(["keys", "generate"])
            let store = try fixture.openStore()
            try await fixture.insert(1...3, sealedBy: try fixture.openVault(), into: store)
            await store.close()
            _ = try await context.run(["store", "copy", "--from", fixture.database, "--to", fixture.path("new.sqlite")])
            try await body(fixture, context)
        }
    }

    @Test("is refused by every command that would change it, with its new place")
    func refused() async throws {
        try await moved { fixture, context in
            try fixture.write("", to: "users")
            let key = try fixture.openVault().ring.current.sealingKeyID
            let commands: [[String]] = [
                [], ["token", "user 1", "--min-ttl", "0"],
                ["grants", "disconnect", "user 1"],
                ["users", "delete", "user 1"], ["grants", "retry", "user 1"],
                ["keys", "rotate"], ["keys", "retire", "\(key)"],
                ["users", "import", fixture.path("users")],
                ["notices", "replay", "--within", "9"],
            ]
            for command in commands {
                let error = await #expect(throws: (any Error).self, "\(command)") {
                    _ = try await context.run(command)
                }
                let failure = CommandError(try #require(error))
                #expect(failure.exitCode == .configuration, "\(command)")
                #expect(
                    failure.message.hasPrefix("\(fixture.database) was moved to the SQLite file /"),
                    "\(command): \(failure)"
                )
                #expect(failure.message.contains("/new.sqlite, and can only be read"), "\(command): \(failure)")
            }
            let store = try fixture.openStore()
            #expect(try await store.grant(ofUser: "user 1")?.state == .active)
            await store.close()
        }
    }

    @Test("can still be read, and the doctor names its new place")
    func read() async throws {
        try await moved { fixture, context in
            let commands: [[String]] = [
                ["grants", "list", "--json"], ["users", "list", "--json"],
                ["grants", "history", "user 1", "--json"], ["users", "show", "user 1", "--json"],
                ["grants", "show", "user 1", "--json"],
                ["grants", "export", "--plaintext"], ["keys", "list"], ["backup", fixture.path("backup")],
                ["store", "copy", "--from", fixture.database, "--to", fixture.path("another.sqlite")],
            ]
            for command in commands {
                #expect(try await context.run(command) == .success, "\(command)")
            }
            #expect(try await context.run(["status", "--json"]) == .soonWithoutTokens)
            let findings = try await StatusSnapshot.read(in: context).findings
            #expect(findings.map(\.kind) == ["store_moved"])
            #expect(findings.first?.text.contains("/another.sqlite, and can only be read: name the new") == true)
            let checks = try await Doctor(context: context).databaseChecks()
            #expect(checks.contains { $0.severity == .fault && "\($0)".contains("was moved to the SQLite file") })
        }
    }
}
