import Testing

@testable import RefreshWorker
@testable import WorkerCommands
@testable import WorkerConfiguration
@testable import WorkerLifecycle

@Suite("Without a database, a command that needs an existing one", .timeLimit(.minutes(10)))
struct MissingDatabaseTests {
    @Test(
        "reports that, and does not create one",
        arguments: [
            .listGrants(GrantListOptions(isJSON: true)), .listUsers(isJSON: true),
            .showHistory(user: "alice", isJSON: true), .showUser(user: "alice", isJSON: true),
            .deleteUser(user: "alice", isJSON: true), .retryGrants(GrantRetryOptions(state: "retrying")),
            .showGrant(user: "alice", isJSON: true),
            .exportGrants(isPlaintext: true), .disconnectGrant(user: "alice", isJSON: false),
            .vendToken(user: "alice", minimumLifetime: .zero),
        ] as [Command]
    )
    func refused(command: Command) async throws {
        try await refused(command, with: .configuration)
    }

    @Test("status says by its exit code that it cannot tell")
    func status() async throws {
        try await refused(.showStatus(isJSON: true), with: .cannotTell)
        try await refused(.watchStatus(isJSON: true), with: .cannotTell)
    }

    private func refused(_ command: Command, with code: ExitCode) async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            _ = try await context.run(.generateKeys())
            let failure = await #expect(throws: CommandFailure.self) { _ = try await context.run(command) }
            #expect(failure?.exitCode == code)
            #expect(failure?.message.contains(fixture.database) == true)
            #expect(try fixture.names == ["keys"])
        }
    }
}
