import Scheduler
import Storage
import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker

@Suite("The commands that repair grants", .timeLimit(.minutes(10)))
struct GrantRepairTests {
    private let unavailable = GrantReason(rawValue: "http_503")
    private let blocked = GrantReason(rawValue: "admin_policy_enforced")

    /// Runs `body` with ten grants due in an hour: 1 and 2 are retrying, 3 is suspended, 4 is disabled, 5 waits for a
    /// confirmation and 6 has ended.
    private func withGrants(
        _ body: @Sendable (OperatorFixture, CommandContext) async throws -> Void
    ) async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context([(.clientID, "right")])
            _ = try await context.run(["keys", "generate"])
            let store = try fixture.openStore()
            try await fixture.insert(1...10, sealedBy: try fixture.openVault(), into: store)
            let now = fixture.time.now
            let later = now + .seconds(3600)
            try await store.transact { transaction in
                for number in 1...6 as ClosedRange<Int64> {
                    var grant = try #require(try transaction.grant(GrantID(rawValue: number)))
                    switch number {
                    case 1, 2: _ = grant.retry(reason: unavailable, dueAt: later, at: now)
                    case 3: _ = grant.suspend(reason: blocked, probeAt: later, at: now)
                    case 4: _ = grant.suspend(reason: .accountDisabled, probeAt: later, at: now)
                    case 5: _ = grant.retry(reason: .invalidGrantUnconfirmed, dueAt: later, at: now)
                    default: _ = grant.requireSignIn(reason: .clientMismatch, at: now)
                    }
                    try transaction.update(grant)
                }
            }
            await store.close()
            try await body(fixture, context)
        }
    }

    private func due(_ fixture: OperatorFixture) async throws -> [Int64] {
        let store = try fixture.openStore()
        let now = fixture.time.now
        var ids: [Int64] = []
        for client in try await store.clientsWithDueTimes() {
            ids += try await store.due(ofClient: client, by: now, after: nil, atMost: 20).map(\.id.rawValue)
        }
        await store.close()
        return ids.sorted()
    }

    @Test(
        "retry makes the selected grants due, and an account that an event disabled only if it is named",
        arguments: [
            (["user 1"], [1]),
            (["user 4"], [4]),
            (["user 9"], [9]),
            (["--state", "retrying"], [1, 2]),
            (["--state", "suspended"], [3, 4]),
            (["--client", "client"], [1, 2, 3]),
            (["--state", "suspended", "--client", "client"], [3, 4]),
            (["--client", "other"], []),
        ] as [([String], [Int64])]
    )
    func retry(options: [String], ids: [Int64]) async throws {
        try await withGrants { fixture, context async throws in
            #expect(try await context.run(["grants", "retry"] + options) == .success)
            #expect(try await due(fixture) == ids)
        }
    }

    @Test(
        "retry refuses a grant that cannot be tried, and names its user",
        arguments: [
            ("user 5", ExitCode.leftForLater, "waits for the confirmation of a refusal"),
            ("user 6", .userMustAct, "is reauth_required (client_mismatch): the user must sign in again"),
            ("eve", .unknownUser, "no grant of user 'eve' is stored"),
        ]
    )
    func refused(user: String, code: ExitCode, text: String) async throws {
        try await withGrants { fixture, context async throws in
            let failure = await #expect(throws: CommandError.self) {
                _ = try await context.run(["grants", "retry", user])
            }
            #expect(failure?.exitCode == code)
            #expect(failure?.message.contains(text) == true && failure?.message.contains("'\(user)'") == true)
            #expect(try await due(fixture) == [])
        }
    }

    @Test("say which connections there are if the named one is not", arguments: ["retry", "disconnect"])
    func unknownConnection(command: String) async throws {
        try await withGrants { _, context async throws in
            let failure = await #expect(throws: CommandError.self) {
                _ = try await context.run(["grants", command, "user 9", "--connection", "work"])
            }
            #expect(failure?.exitCode == .unknownUser)
            #expect(failure?.message == "user 'user 9' has no connection work; there are: default")
        }
    }

    @Test("set-client moves the grants, and tries those again that were refused as of another client id")
    func setClient() async throws {
        try await withGrants { fixture, context async throws in
            #expect(
                try await context.run(["grants", "set-client", "--from", "client", "--to", "right", "--json"])
                    == .success
            )
            let store = try fixture.openStore()
            #expect(try await store.clientsWithDueTimes() == ["right"])
            let grant = try #require(try await store.grant(ofUser: "user 6"))
            #expect(grant.state == .retrying && grant.reason == .none)
            await store.close()
            #expect(try await due(fixture) == [6])
        }
    }

    @Test("set-client leaves a grant in flight for another call")
    func inFlight() async throws {
        try await withGrants { fixture, context async throws in
            let store = try fixture.openStore()
            let claimed = try await store.claim([GrantID(rawValue: 7)], dueBy: nil, owner: "w", for: .seconds(30))
            #expect(claimed.count == 1)
            let command = ["grants", "set-client", "--from", "client", "--to", "right"]
            #expect(try await context.run(command) == .leftForLater)
            #expect(try await store.grant(ofUser: "user 7")?.clientID == "client")
            try await store.release(Dictionary(uniqueKeysWithValues: claimed.map { ($0.id, $0.lease?.claim ?? 0) }))
            #expect(try await context.run(command) == .success)
            #expect(try await store.grant(ofUser: "user 7")?.clientID == "right")
            await store.close()
        }
    }

    @Test("set-client refuses a client id that is not configured")
    func unconfigured() async throws {
        try await withGrants { fixture, context async throws in
            let failure = await #expect(throws: CommandError.self) {
                _ = try await context.run(["grants", "set-client", "--from", "client", "--to", "typo"])
            }
            #expect(failure?.exitCode == .configuration)
            #expect(failure?.message.contains("'typo' is not configured") == true)
            #expect(failure?.message.contains("configured: 'right'") == true)
            let store = try fixture.openStore()
            #expect(try await store.grant(ofUser: "user 1")?.clientID == "client")
            await store.close()
        }
    }

    @Test("a tally names only what was left")
    func tally() {
        #expect(RetryCounts([:]).sentence == "0 grants are due now")
        #expect(RetryCounts([.due: 1]).sentence == "1 grant is due now")
        let counts: [GrantRetry: Int] = [.due: 1, .inFlight: 1, .accountDisabled: 1]
        #expect(
            RetryCounts(counts).sentence
                .hasPrefix("1 grant is due now; left as they are: 1 being refreshed at this moment, 1 with")
        )
        #expect(written(RetryCounts(counts).write).text.contains(#""due":1,"in_flight":1,"#))
    }
}
