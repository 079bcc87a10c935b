import Base
import Crypto
import Foundation
import Storage
import Testing

@testable import RefreshWorker

@Suite("Retiring and making keys")
struct KeyRetirementTests {
    private static let old = KeyID.named("00000001")
    private static let new = KeyID.named("00000002")
    private static let keys = KeyRingSummary(sealing: new, opening: [old])
    private static let outdatedWorker = WorkerReport(id: "7-ab", keyIDs: [old, new], sealingKeyID: old)

    @Test(
        "a key stays while it is needed",
        arguments: [
            (KeyID.named("0000000f"), [:], [], .badData, "has no key 0000000f"),
            (new, [:], [], .leftForLater, "seals new tokens"),
            (old, [old: 2], [], .leftForLater, "still seals 2 tokens"),
            (old, [:], [outdatedWorker], .leftForLater, "worker 7-ab"),
        ] as [(KeyID, [KeyID: Int], [WorkerReport], ExitCode, String)]
    )
    func refused(key: KeyID, keysInUse: [KeyID: Int], workers: [WorkerReport], code: ExitCode, text: String) throws {
        let refusal = try #require(
            CommandError(retiring: key, of: Self.keys, keysInUse: keysInUse, workers: workers)
        )
        #expect(refusal.exitCode == code)
        #expect(refusal.message.contains(text))
    }

    @Test("an unneeded key is removed")
    func allowed() {
        let worker = WorkerReport(id: "8-cd", keyIDs: [Self.old, Self.new], sealingKeyID: Self.new)
        let refusal = CommandError(
            retiring: Self.old,
            of: Self.keys,
            keysInUse: [Self.new: 3],
            workers: [worker]
        )
        #expect(refusal == nil)
    }

    @Test("the command retires the key, removes it after a day, and refuses while a token is sealed with it")
    func command() async throws {
        try await OperatorFixture.with { fixture in
            let old = try KeyRingFile.generate(path: fixture.keyFile)
            let oldVault = try fixture.openVault()
            let new = try KeyRingFile.addPending(path: fixture.keyFile)
            try KeyRingFile.promote(new, path: fixture.keyFile)
            let store = try fixture.openStore()
            try await fixture.insert(1...1, sealedBy: oldVault, into: store)
            let context = try fixture.context()
            let refusal = await failure { try await context.run(["keys", "retire", old.description]) }
            #expect(refusal?.exitCode == .leftForLater)
            #expect(try KeyRingFile.load(path: fixture.keyFile).keyIDs == [new, old])

            var outdated = try #require(try await store.grant(GrantID(rawValue: 1)))
            let vault = try fixture.openVault()
            let secret = try #require(try vault.openRefreshToken(of: outdated))
            let access = try #require(try vault.openAccessToken(of: outdated))
            outdated.reseal(
                refreshToken: try vault.seal(refreshToken: secret, for: outdated.id),
                accessToken: try vault.seal(accessToken: access, for: outdated.id)
            )
            let resealed = outdated
            try await store.transact { try $0.update(resealed) }
            await store.close()
            #expect(try await context.run(["keys", "retire", old.description]) == .success)
            let ring = try KeyRingFile.load(path: fixture.keyFile)
            #expect(ring.keyIDs == [new, old])
            #expect(KeyRingSummary(ring).role(of: old) == .retired)
            let early = await failure { try await context.run(["keys", "retire", old.description]) }
            #expect(early?.exitCode == .leftForLater)
            #expect(early?.message.contains("is retired already") == true)

            try KeyRingFile.retire(old, at: context.time.now - .seconds(86_401), path: fixture.keyFile)
            #expect(KeyRingSummary(try KeyRingFile.load(path: fixture.keyFile)).expired(at: context.time.now) == [old])
            #expect(try await context.run(["keys", "retire", old.description]) == .success)
            #expect(try KeyRingFile.load(path: fixture.keyFile).keyIDs == [new])
        }
    }

    @Test("a result that was sealed before its key was retired opens when it is stored later")
    func lateResult() async throws {
        try await OperatorFixture.with { fixture in
            let old = try KeyRingFile.generate(path: fixture.keyFile)
            let worker = try fixture.openVault()
            let late = try fixture.grant(1, sealedBy: worker)
            let new = try KeyRingFile.addPending(path: fixture.keyFile)
            try KeyRingFile.promote(new, path: fixture.keyFile)
            let store = try fixture.openStore()
            let context = try fixture.context()
            #expect(try await context.run(["keys", "retire", old.description]) == .success)
            try await store.transact { try $0.insert(late) }
            await store.close()
            let opened = try fixture.openVault().openRefreshToken(of: late)
            #expect(opened?.reveal() == "refresh 1")
            let refusal = await failure { try await context.run(["keys", "retire", old.description]) }
            #expect(refusal?.message.contains("still seals 2 tokens") == true)
        }
    }

    @Test(
        "as JSON, the outcome names the key and what became of it",
        arguments: [
            (
                .retired(removableAt: Timestamp(secondsSince1970: 1_800_000_000)),
                #"{"key":"00000001","result":"retired","file":"k","removable_at":"2027-01-15T08:00:00.000Z"}"#
            ),
            (
                .retired(removableAt: nil),
                #"{"key":"00000001","result":"retired","file":"k","removable_at":null}"#
            ),
            (.removed, #"{"key":"00000001","result":"removed","file":"k"}"#),
            (.givenUp(tokens: 2), #"{"key":"00000001","result":"given_up","unreadable_tokens":2}"#),
        ] as [(KeyRetirement, String)]
    )
    func json(outcome: KeyRetirement, text: String) {
        #expect(written { outcome.write(Self.old, in: "k", to: &$0) }.text == text)
    }

    @Test("as JSON, a rotation names the keys that are not needed and the users whose tokens cannot be opened")
    func rotationAsJSON() {
        let outcome = KeyRotation.Outcome(
            sealingKeyID: Self.new,
            resealed: 3,
            retirable: [Self.old],
            removable: [],
            unreadable: ["alice"],
            remainingTokens: 1,
            warnings: []
        )
        #expect(
            written(outcome.write).text == """
                {"sealing_key":"00000002","resealed":3,"remaining_tokens":1,"retirable_keys":["00000001"],\
                "removed_keys":[],"unreadable_users":["alice"]}
                """
        )
    }

    @Test("an invalid key id is bad data")
    func noKeyID() async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            #expect(await failure { try await context.run(["keys", "retire", "oldest"]) }?.exitCode == .badData)
        }
    }

    @Test("a ring is made once, and not in a missing folder")
    func generate() async throws {
        try await OperatorFixture.with { fixture in
            #expect(try await fixture.context().run(["keys", "generate"]) == .success)
            let first = try Data(contentsOf: URL(filePath: fixture.keyFile))
            let context = try fixture.context()
            #expect(await failure { try await context.run(["keys", "generate"]) }?.exitCode == .cannotCreate)
            #expect(try Data(contentsOf: URL(filePath: fixture.keyFile)) == first)

            let lost = try fixture.context([(.keyFile, fixture.path("no/keys"))])
            let refusal = await failure { try await lost.run(["keys", "generate"]) }
            #expect(refusal?.exitCode == .cannotCreate)
            #expect(refusal?.message.contains("mkdir -p \(fixture.path("no"))") == true)
            #expect(!fixture.exists("no"))
        }
    }

    @Test("no ring is made while the database holds tokens that another ring has sealed")
    func generateBesideTokens() async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            _ = try await context.run(["keys", "generate"])
            let store = try fixture.openStore()
            try await fixture.insert(1...3, sealedBy: try fixture.openVault(), into: store)
            let key = try #require(try await store.keysInUse().keys.first)
            await store.close()
            try FileManager.default.removeItem(atPath: fixture.keyFile)

            let refusal = await failure { try await context.run(["keys", "generate"]) }
            #expect(refusal?.exitCode == .cannotCreate)
            let message = refusal?.message ?? ""
            #expect(message.contains("holds 6 tokens that need key \(key)") && message.contains(fixture.database))
            #expect(!fixture.exists("keys"))
            #expect(try await context.run(["keys", "generate", "--lost"]) == .success)
        }
    }

    @Test("a list shows the number of tokens of each key, and warns of missing keys")
    func listing() {
        let missing = KeyID.named("0000000f")
        let keys = KeyRingSummary(sealing: Self.new, opening: [Self.old], pending: [KeyID.named("00000003")])
        let inUse = [Self.new: 1, Self.old: 12, missing: 2]
        #expect(
            keys.lines(inUse) == [
                "00000002  seals    1 token", "00000001  opens    12 tokens", "00000003  pending  0 tokens",
            ]
        )
        let first = #"{"key":"00000002","role":"seals","tokens":1,"removable_at":null}"#
        #expect(keys.json(inUse).first?.text == first)
        #expect(keys.warnings(inUse).count == 1)
        #expect(keys.warnings(inUse).first?.contains("2 tokens of key 0000000f") == true)
        #expect(keys.lines(nil).first == "00000002  seals")
    }

    @Test("commands about stored tokens do not create a database")
    func noDatabase() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let context = try fixture.context()
            #expect(try await context.run(["keys", "list"]) == .success)
            #expect(await failure { try await context.run(["keys", "rotate"]) }?.exitCode == .configuration)
            #expect(await failure { try await context.run(["status", "--json"]) }?.exitCode == .cannotTell)
            #expect(
                await failure { try await context.run(["backup", fixture.path("copy")]) }?.exitCode == .configuration
            )
            #expect(try fixture.names == ["keys"])
        }
    }
}

/// Returns the failure of a command as the program would end; `nil` if it succeeded.
func failure(of command: () async throws -> ExitCode) async -> CommandError? {
    do {
        _ = try await command()
        return nil
    } catch {
        return CommandError(error)
    }
}

extension KeyRingSummary {
    init(sealing: KeyID, opening: [KeyID] = [], pending: [KeyID] = []) {
        let others = opening.map { Entry(id: $0, role: .opens) } + pending.map { Entry(id: $0, role: .pending) }
        self.init(entries: [Entry(id: sealing, role: .seals)] + others, sealingKeyID: sealing)
    }
}
