import Records
import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker
@testable import Storage

@Suite("The commands about users", .timeLimit(.minutes(10)))
struct UserCommandTests {
    private func withUser(
        _ body: @Sendable (OperatorFixture, CommandContext) async throws -> Void
    ) async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            _ = try await context.run(["keys", "generate"])
            let store = try fixture.openStore()
            try await fixture.insert(1...1, sealedBy: try fixture.openVault(), into: store)
            await store.close()
            try await body(fixture, context)
        }
    }

    @Test("delete keeps a tombstone, and leaves the revocation to a worker if Google cannot be reached")
    func delete() async throws {
        try await withUser { fixture, context async throws in
            #expect(try await context.run(["users", "delete", "user 1", "--json"]) == .leftForLater)
            let store = try fixture.openStore()
            let user = try #require(try await store.user("user 1"))
            #expect(user.deletedUntil == fixture.time.now + AccountDeletion.minimumTombstone)
            let grant = try #require(try await store.grant(ofUser: "user 1"))
            #expect(grant.state == .disconnected && grant.reason == .userDeleted && grant.revocationAskedAt != nil)
            await store.close()
        }
    }

    @Test("a dry run of delete and disconnect changes nothing", arguments: ["users delete", "grants disconnect"])
    func dryRun(command: String) async throws {
        try await withUser { fixture, context async throws in
            let words = command.split(separator: " ").map(String.init)
            let before = try await stored(in: fixture)
            #expect(try await context.run(words + ["user 1", "--dry-run"]) == .success)
            #expect(try await stored(in: fixture) == before)
            let failure = await #expect(throws: CommandError.self) {
                _ = try await context.run(words + ["eve", "--dry-run"])
            }
            #expect(failure?.exitCode == .unknownUser)
        }
    }

    private func stored(in fixture: OperatorFixture) async throws -> [String] {
        let store = try fixture.openStore()
        let grant = try #require(try await store.grant(ofUser: "user 1"))
        let user = try await store.user("user 1")
        let events = try await store.events(of: grant.id, atMost: 10)
        await store.close()
        return ["\(grant)", "\(user as Any)", "\(events)"]
    }

    @Test("delete and show name a user who is not stored", arguments: ["eve", "user 1"])
    func unknown(user: String) async throws {
        try await withUser { fixture, context async throws in
            if user == "user 1" { _ = try await context.run(["users", "delete", user]) }
            let failure = await #expect(throws: CommandError.self) {
                _ = try await context.run(["users", "delete", user])
            }
            #expect(failure?.exitCode == .unknownUser)
            #expect(failure?.message.split(separator: "'\(user)'").count == 2)
        }
    }

    @Test("forget needs the number of days, and a dry run changes nothing")
    func forget() async throws {
        try await withUser { fixture, _ async throws in
            let store = try fixture.openStore()
            try await store.transact { transaction in
                var grant = try #require(try transaction.grant(ofUser: "user 1"))
                _ = grant.disconnect(reason: .invalidGrant, at: fixture.time.now - .seconds(40 * 86_400))
                try transaction.update(grant)
            }
            await store.close()
            let failure = await #expect(throws: CommandError.self) {
                _ = try await fixture.context().run(["users", "forget"])
            }
            #expect(failure?.message.contains("needs --forget-ended-after") == true)
            for (days, isDryRun, reason) in [
                ("30", true, GrantReason.invalidGrant), ("41", false, .invalidGrant), ("30", false, .forgotten),
            ] {
                let context = try fixture.context([(.forgetEndedAfter, days)])
                #expect(try await context.run(["users", "forget"] + (isDryRun ? ["--dry-run"] : [])) == .success)
                let store = try fixture.openStore()
                #expect(try await store.grant(ofUser: "user 1")?.reason == reason)
                await store.close()
            }
        }
    }

    @Test("show prints exactly these members, and never a token")
    func members() async throws {
        try await withUser { fixture, context async throws in
            let store = try fixture.openStore()
            let user = try #require(try await store.user("user 1"))
            let grants = try await store.grants(ofUser: "user 1")
            await store.close()
            let shown = try #require(
                try JSONValue.parse(written { user.write(with: grants, to: &$0) }.bytes).object
            )
            #expect(
                Set(shown.keys) == [
                    "user_id", "email", "email_verified", "name", "picture", "google_user_id", "is_active",
                    "created_at",
                    "last_login", "deleted_until", "grant", "connections",
                ]
            )
            #expect(shown["grant"]?.object?["state"] == .string("active"))
            let texts = user.lines(with: grants, at: fixture.time.now) + ["\(shown)"]
            #expect(texts.allSatisfy { !$0.contains("refresh 1") && !$0.contains("access 1") })
            #expect(texts.contains { $0.hasPrefix("grant ") && $0.contains("active, since") })
            for command in [["users", "list"], ["users", "show", "user 1"]] {
                #expect(try await context.run(command) == .success)
            }
        }
    }
}
