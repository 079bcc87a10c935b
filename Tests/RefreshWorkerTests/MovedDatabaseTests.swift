import Crypto
import Storage
import Testing

@testable import Commands
@testable import RefreshWorker
@testable import Worker

@Suite("A database that was moved", .timeLimit(.minutes(10)))
struct MovedDatabaseTests {
    private func moved(_ body: (OperatorFixture, CommandContext) async throws -> Void) async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            _ = try await context.run(.generateKeys())
            let store = try fixture.openStore()
            try await fixture.insert(1...3, sealedBy: try fixture.openVault(), into: store)
            await store.close()
            _ = try await context.run(.copyStore(from: fixture.database, to: fixture.path("new.sqlite")))
            try await body(fixture, context)
        }
    }

    @Test("is refused by every command that would change it, with its new place")
    func refused() async throws {
        try await moved { fixture, context in
            try fixture.write("", to: "users")
            let key = try fixture.openVault().ring.current.sealingKeyID
            let commands: [Command] = [
                .work, .vendToken(user: "user 1", minimumLifetime: .zero),
                .disconnectGrant(user: "user 1", isJSON: false),
                .deleteUser(user: "user 1", isJSON: false), .retryGrants(GrantRetryOptions(user: "user 1")),
                .rotateKeys(), .retireKey(id: "\(key)", isLost: false),
                .importUsers(UserImportOptions(file: fixture.path("users"))),
                .replayNotices(user: nil, within: .seconds(9)),
            ]
            for command in commands {
                let error = await #expect(throws: (any Error).self, "\(command)") {
                    _ = try await context.run(command)
                }
                let failure = CommandFailure(try #require(error))
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
            let commands: [Command] = [
                .listGrants(GrantListOptions(isJSON: true)), .listUsers(isJSON: true),
                .showHistory(user: "user 1", isJSON: true), .showUser(user: "user 1", isJSON: true),
                .showGrant(user: "user 1", isJSON: true),
                .exportGrants(isPlaintext: true), .listKeys(), .backUp(file: fixture.path("backup")),
                .copyStore(from: fixture.database, to: fixture.path("another.sqlite")),
            ]
            for command in commands {
                #expect(try await context.run(command) == .success, "\(command)")
            }
            // No worker runs on it.
            #expect(try await context.run(.showStatus(isJSON: true)) == .concerns)
            let diagnoses = try await Doctor(context: context).databaseDiagnoses()
            #expect(diagnoses.contains { $0.severity == .fault && "\($0)".contains("was moved to the SQLite file") })
        }
    }
}
