import Base
import Crypto
import Foundation
import Storage
import TestSupport
import Testing

@testable import RefreshWorker

@Suite("The keys that refresh tokens are bound to")
struct BindingKeyCommandTests {
    private static let server = "1234-server.apps.googleusercontent.com"

    /// Makes a ring with a binding key, and a database with a grant that is bound to it.
    private func bound(in fixture: OperatorFixture) async throws -> KeyID {
        _ = try KeyRingFile.generate(path: fixture.keyFile)
        return try await bindGrant(1, in: fixture)
    }

    /// Adds a binding key, and a grant that is bound to it.
    private func bindGrant(_ number: Int64, in fixture: OperatorFixture) async throws -> KeyID {
        #expect(try await fixture.context().run(["keys", "add-binding"]) == .success)
        let vault = try fixture.openVault()
        let key = try #require(vault.ring.current.bindingKey).id
        var grant = try fixture.grant(number, sealedBy: vault)
        grant.reseal(refreshToken: nil, accessToken: nil)
        let token = try vault.seal(refreshToken: Secret("bound"), for: grant.id, boundTo: key)
        _ = grant.rotate(to: token, at: fixture.time.now)
        let store = try fixture.openStore()
        try await store.transact { [grant] in try $0.insert(grant) }
        await store.close()
        return key
    }

    @Test("are added by a command, and the last one added binds")
    func added() async throws {
        try await OperatorFixture.with { fixture in
            let sealing = try KeyRingFile.generate(path: fixture.keyFile)
            let context = try fixture.context()
            #expect(try await context.run(["keys", "add-binding"]) == .success)
            let first = try #require(try KeyRingFile.load(path: fixture.keyFile).bindingKey).id
            #expect(try await context.run(["keys", "add-binding", "--json"]) == .success)
            let ring = try KeyRingFile.load(path: fixture.keyFile)
            #expect(ring.sealingKeyID == sealing)
            let summary = KeyRingSummary(ring)
            let second = try #require(ring.bindingKey).id
            #expect(second != first)
            #expect(summary.role(of: second) == .binds && summary.role(of: first) == .bound)
            #expect(
                summary.lines([sealing: 3, first: 2]) == [
                    "\(sealing)  seals    3 tokens", "\(second)  binds    0 tokens", "\(first)  bound    2 tokens",
                ]
            )
        }
    }

    @Test("are not added to a ring that does not exist")
    func noRing() async throws {
        try await OperatorFixture.with { fixture in
            let context = try fixture.context()
            let error = await failure { try await context.run(["keys", "add-binding"]) }
            #expect(error?.exitCode == .configuration)
            #expect(error?.message.contains("does not exist") == true)
            #expect(try fixture.names.isEmpty)
        }
    }

    @Test("stay while a grant needs them, whatever the setting says")
    func kept() async throws {
        try await OperatorFixture.with { fixture in
            let key = try await bound(in: fixture)
            let context = try fixture.context()
            #expect(try await context.run(["keys", "add-binding"]) == .success)
            let error = await failure { try await context.run(["keys", "retire", key.description]) }
            #expect(error?.exitCode == .leftForLater)
            #expect(error?.message.contains("key \(key) binds 1 token") == true)
            #expect(try KeyRingFile.load(path: fixture.keyFile).keyIDs.contains(key))
        }
    }

    @Test("are retired once no grant needs them, unless new tokens are bound to them, and stay in the ring")
    func retired() async throws {
        try await OperatorFixture.with { fixture in
            let key = try await bound(in: fixture)
            let store = try fixture.openStore()
            try await store.transact { transaction in
                var grant = try #require(try transaction.grant(GrantID(rawValue: 1)))
                _ = grant.disconnectByRequest(revokes: false, at: fixture.time.now)
                try transaction.update(grant)
            }
            await store.close()
            try fixture.write("\(Self.server) secret", to: "secrets")
            let binding = try fixture.context([
                (.bindTokens, "yes"), (.serverClientID, Self.server), (.clientSecretFile, fixture.path("secrets")),
            ])
            let refusal = await failure { try await binding.run(["keys", "retire", key.description]) }
            #expect(refusal?.message.contains("run: refresh-worker keys add-binding") == true)
            let context = try fixture.context()
            #expect(try await context.run(["keys", "retire", key.description]) == .success)
            let ring = try KeyRingFile.load(path: fixture.keyFile)
            #expect(ring.bindingKey == nil && ring.keyIDs.contains(key))
            for retiredAt in [context.time.now, context.time.now - .seconds(86_401)] {
                try KeyRingFile.retire(key, at: retiredAt, path: fixture.keyFile)
                let stays = await failure { try await context.run(["keys", "retire", key.description]) }
                #expect(stays?.exitCode == .leftForLater)
                #expect(stays?.message.contains("a binding key stays in the ring") == true)
            }
            #expect(try await context.run(["keys", "rotate"]) == .success)
            #expect(try KeyRingFile.load(path: fixture.keyFile).keyIDs.contains(key))
        }
    }

    @Test("are not promised to leave the ring when they are retired")
    func noPromise() throws {
        let (sealing, binding) = (KeyID.named("00000001"), KeyID.named("00000002"))
        let retiredAt = Timestamp(secondsSince1970: 1_800_000_000)
        let keys = KeyRingSummary(
            entries: [
                KeyRingSummary.Entry(id: sealing, role: .retired, retiredAt: retiredAt),
                KeyRingSummary.Entry(id: binding, role: .retired, retiredAt: retiredAt, isBinding: true),
            ],
            sealingKeyID: sealing
        )
        #expect(
            keys.lines([binding: 1]) == [
                "00000001  retired  0 tokens, stays until 2027-01-16T08:00:00Z", "00000002  retired  1 token",
            ]
        )
        #expect(keys.lines(nil).last == "00000002  retired")
        #expect(
            keys.json(nil).map(\.text) == [
                #"{"key":"00000001","role":"retired","tokens":null,"removable_at":"2027-01-16T08:00:00.000Z"}"#,
                #"{"key":"00000002","role":"retired","tokens":null,"removable_at":null}"#,
            ]
        )
        #expect(keys.expired(at: retiredAt + .seconds(86_400)) == [sealing])
        let text = KeyRetirement.retired(removableAt: nil).text(of: binding, in: "k")
        #expect(text.contains("Its line stays in the file") && !text.contains("to remove it"))
    }

    @Test("are no tokens to seal again for a rotation of the sealing key")
    func rotation() async throws {
        try await OperatorFixture.with { fixture in
            let key = try await bound(in: fixture)
            let context = try fixture.context()
            #expect(try await context.run(["keys", "rotate"]) == .success)
            let ring = try KeyRingFile.load(path: fixture.keyFile)
            #expect(ring.bindingKey?.id == key)
            let store = try fixture.openStore()
            let grant = try #require(try await store.grant(GrantID(rawValue: 1)))
            await store.close()
            #expect(grant.refreshToken?.sealed.keyID == ring.sealingKeyID)
            #expect(grant.refreshToken?.bindingKeyID == key)
            #expect(try fixture.openVault().openRefreshToken(of: grant) == Secret("bound"))
        }
    }

    @Test("are needed by the setting, and the worker's start says which command makes one")
    func neededAtStart() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            try fixture.write("\(Self.server) secret", to: "secrets")
            let flags: [(Setting.Name, String)] = [
                (.bindTokens, "yes"), (.serverClientID, Self.server), (.clientSecretFile, fixture.path("secrets")),
            ]
            let context = try fixture.context(flags)
            let vault = try context.openVault()
            let error = #expect(throws: CommandError.self) { try context.checkBinding(with: vault) }
            #expect(error?.exitCode == .configuration)
            #expect(
                error?.message.contains("run: refresh-worker keys add-binding --key-file \(fixture.keyFile)") == true
            )
            let problems = try fixture.context([(.bindTokens, "yes")]).configuration.servingProblems(environment: [:])
            #expect(problems.contains { "\($0)".contains("--bind-tokens") && "\($0)".contains("--server-client-id") })
            _ = try KeyRingFile.addBinding(path: fixture.keyFile)
            let next = try fixture.context(flags)
            #expect(throws: Never.self) { try next.checkBinding(with: next.openVault()) }
        }
    }

    @Test("do not make one token count as two where the key ring is missing")
    func countedOnce() async throws {
        try await OperatorFixture.with { fixture in
            let key = try await bound(in: fixture)
            let sealing = try KeyRingFile.load(path: fixture.keyFile).sealingKeyID
            try FileManager.default.removeItem(atPath: fixture.keyFile)
            let context = try fixture.context()
            let refusal = await failure { try await context.run(["keys", "generate"]) }
            let ids = [key, sealing].sorted().map(\.description).joined(separator: ", ")
            #expect(refusal?.message.contains("holds 2 tokens that need key \(ids), which") == true)
            let store = try #require(try await context.openStoreIfThere(for: .reading))
            let checks = await Doctor(context: context).recordChecks(of: store)
            await store.close()
            let keys = try #require(checks.first { $0.name == "keys in use" })
            #expect(keys.finding == "2 tokens of the keys in the missing file cannot be used")
        }
    }

    @Test("are announced by doctor before they can be lost")
    func doctor() async throws {
        try await OperatorFixture.with { fixture in
            let key = try await bound(in: fixture)
            _ = try await bindGrant(2, in: fixture)
            let context = try fixture.context()
            let store = try #require(try await context.openStoreIfThere(for: .reading))
            let checks = await Doctor(context: context).recordChecks(of: store)
            let keys = try #require(checks.first { $0.name == "keys in use" })
            #expect(keys.severity == .ok)
            #expect(keys.finding.contains("in the ring, which binds 2 refresh tokens: without a copy of it"))
            await store.close()
            try KeyRingFile.remove(key, path: fixture.keyFile)
            let without = try fixture.context()
            let lost = try #require(try await without.openStoreIfThere(for: .reading))
            let fault = try #require(
                await Doctor(context: without).recordChecks(of: lost).first { $0.name == "keys in use" }
            )
            await lost.close()
            #expect(fault.severity == .fault)
            #expect(fault.finding.contains("1 token of key \(key), which the ring lacks"))
        }
    }
}
