import Base
import Crypto
import Foundation
import TestSupport
import Testing

@testable import RefreshWorker
@testable import Scheduler
@testable import Storage

@Suite("A spill file and a key ring that does not open it", .timeLimit(.minutes(10)))
struct SpilledKeyTests {
    /// Makes a database with one grant whose rotated token only the spill file has.
    ///
    /// A rotation of the keys followed.
    private func withFile(_ body: (OperatorFixture, String, KeyID) async throws -> Void) async throws {
        try await OperatorFixture.with { fixture in
            let key = try KeyRingFile.generate(path: fixture.keyFile)
            let vault = try fixture.openVault()
            let store = try fixture.openStore()
            try await fixture.insert(1...1, sealedBy: vault, into: store)
            let claim = RefreshClaim(grant: GrantID(rawValue: 1), clientID: "client", number: 7, generation: 1)
            let now = fixture.time.now
            let access = Grant.AccessToken(
                sealed: try vault.seal(accessToken: Secret("access"), for: claim.grant),
                obtainedAt: now,
                expiresAt: now + .seconds(3600)
            )
            let rotated = try vault.seal(refreshToken: Secret("rotated"), for: claim.grant)
            let result = RefreshResult(
                claim: claim,
                answer: .granted(RefreshedTokens(accessToken: access, rotated: rotated))
            )
            let path: String
            do {
                // At the end of this scope the file is not locked any more.
                let spill = try await fixture.openSpill(try fixture.context(), vault: vault)
                try await spill.save([result])
                path = try #require(spill.path)
            }

            let second = try KeyRingFile.addPending(path: fixture.keyFile)
            try KeyRingFile.promote(second, path: fixture.keyFile)
            let ring = try fixture.openVault().ring.current
            #expect(try await store.fit(of: ring) == .fits)
            try await store.recordKey(second, of: ring)
            await store.close()
            try await body(fixture, path, key)
        }
    }

    private func token(_ fixture: OperatorFixture) async throws -> String? {
        let store = try fixture.openStore()
        let grant = try await store.grant(ofUser: "user 1")
        await store.close()
        return try grant.flatMap { try fixture.openVault().openRefreshToken(of: $0)?.reveal() }
    }

    /// Returns the error of a worker that opens the database.
    private func refusal(_ context: CommandContext) async throws -> CommandError? {
        do {
            await (try await context.openStore()).close()
            return nil
        } catch let error as CommandError {
            return error
        }
    }

    @Test(
        "wait for each other: a command that reads leaves the file in place, a worker does not start",
        arguments: [true, false]
    )
    func wrongRing(lacksOneKey: Bool) async throws {
        try await withFile { fixture, path, key in
            let other = fixture.path("other")
            if lacksOneKey {
                try FileManager.default.copyItem(atPath: fixture.keyFile, toPath: other)
                try KeyRingFile.remove(key, path: other)
            } else {
                _ = try KeyRingFile.generate(path: other)
            }
            let wrong = try fixture.context([(.keyFile, other)])
            _ = try await wrong.run(["status", "--json"])
            let refusal = try #require(try await refusal(wrong))
            #expect(refusal.exitCode == .configuration)
            for part in ["grants.sqlite", other, key.description] { #expect(refusal.message.contains(part)) }
            #expect(try FileStatus.of(path) != nil)

            #expect(try await self.refusal(try fixture.context()) == nil)
            #expect(try await token(fixture) == "rotated")
            #expect(try FileStatus.of(path) == nil)
        }
    }

    @Test("do not stop a worker for which the key was given up, and the file is set aside in case the key is found")
    func givenUp() async throws {
        try await withFile { fixture, path, key in
            try FileManager.default.copyItem(atPath: fixture.keyFile, toPath: fixture.path("complete"))
            try KeyRingFile.remove(key, path: fixture.keyFile)
            let context = try fixture.context()
            #expect(try await refusal(context) != nil)
            #expect(try await context.run(["keys", "retire", "\(key)", "--lost"]) == .success)
            #expect(try await refusal(context) == nil)
            #expect(try FileStatus.of(path) == nil)

            let complete = try fixture.context([(.keyFile, fixture.path("complete"))])
            #expect(try await complete.run(["results", "recover", SpillLocation.setAside(path)]) == .success)
            #expect(try FileStatus.of(SpillLocation.setAside(path)) == nil)
        }
    }
}
