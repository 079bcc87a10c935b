import Base
import GoogleOAuth
import Testing

@testable import Crypto
@testable import Scheduler
@testable import Storage

@Suite("A result outside the store")
struct SpilledResultTests {
    private func vault() throws -> TokenVault {
        let ring = try KeyRing(keys: [RingKey.random()])
        return TokenVault(ring: try ReloadableKeyRing { ring })
    }

    private let claim = RefreshClaim(
        grant: GrantID(rawValue: -7),
        clientID: "client",
        number: .min,
        generation: .max
    )

    @Test("keeps everything that the rules use")
    func roundTrip() throws {
        let vault = try vault()
        let rotated = try vault.seal(refreshToken: Secret("rotated"), for: claim.grant, expiresAt: start)
        let whole = RefreshedTokens(
            accessToken: try Sample.accessToken(),
            rotated: rotated,
            scope: "openid \u{1f511}",
            refreshTokenExpiresAt: start + .seconds(7)
        )
        let bare = RefreshedTokens(accessToken: try Sample.accessToken())
        let unmarked = RefreshedTokens(accessToken: try Sample.accessToken(), rotated: try Sample.refreshToken())
        for tokens in [whole, bare, unmarked] {
            let sealed = try #require(
                try RefreshResult(claim: claim, answer: .granted(tokens)).sealed(with: vault)
            )
            let back = try RefreshResult.open(sealed, with: vault)
            #expect(back.claim == claim)
            guard case .granted(let read) = back.answer else { throw Missing() }
            #expect(read == tokens)
        }
        let flawed = RefreshResult(claim: claim, answer: .flawed(code: "flawed_answer", rotated: rotated))
        let back = try RefreshResult.open(try #require(try flawed.sealed(with: vault)), with: vault)
        guard case .flawed("flawed_answer", rotated) = back.answer else { throw Missing() }
    }

    @Test(
        "drops a digest of another length, which the list of issued tokens could not hold",
        arguments: [0, 15, 16, 17]
    )
    func digestLength(_ length: Int) throws {
        let vault = try vault()
        let digest = [UInt8](repeating: 7, count: length)
        let tokens = RefreshedTokens(accessToken: try Sample.accessToken(), digest: digest)
        let result = RefreshResult(claim: claim, answer: .granted(tokens))
        let sealed = try #require(try result.sealed(with: vault))
        guard case .granted(let read) = try RefreshResult.open(sealed, with: vault).answer else { throw Missing() }
        #expect(read.digest == (length == 16 ? digest : nil))
    }

    @Test("keeps the sent token and the time of the previous attempt, which decide about a late answer")
    func sentToken() throws {
        let vault = try vault()
        var sent = try vault.seal(refreshToken: Secret("sent"), for: GrantID(rawValue: 7), expiresAt: start)
        sent.bindingKeyID = KeyID("0000000b")
        sent.consentedAt = start - .seconds(9)
        sent.isExpiryNoticed = true
        let claim = RefreshClaim(
            grant: GrantID(rawValue: 7),
            clientID: "client",
            number: 1,
            generation: 2,
            lastAttemptAt: start,
            refreshToken: sent
        )
        let result = RefreshResult(claim: claim, answer: try Sample.granted())
        let sealed = try #require(try result.sealed(with: vault))
        let back = try RefreshResult.open(sealed, with: vault)
        #expect(back.claim == claim)
    }

    @Test("keeps the fingerprint of the client secret, with which later refusals are compared")
    func secretFingerprint() throws {
        let vault = try vault()
        let secret = ClientSecretFingerprint(of: Secret("hush"), clientID: "client")
        let rotated = try vault.seal(refreshToken: Secret("rotated"), for: claim.grant, expiresAt: start)
        for answer in [try Sample.granted(), .flawed(code: "flawed_answer", rotated: rotated)] {
            for fingerprint in [secret, .none] {
                let result = RefreshResult(claim: claim, answer: answer, secretFingerprint: fingerprint)
                let sealed = try #require(try result.sealed(with: vault))
                #expect(try RefreshResult.open(sealed, with: vault).secretFingerprint == fingerprint)
            }
        }
    }

    @Test("does not exist if the answer brings no token")
    func withoutTokens() throws {
        let vault = try vault()
        let answers: [RefreshResult.Answer] = [
            .flawed(code: "flawed_answer", rotated: nil), .failed(.invalidGrant, retryAfter: nil), .withoutRefreshToken,
            .unreadable(.notSealed), .revocation(failure: nil),
        ]
        for answer in answers {
            #expect(try RefreshResult(claim: claim, answer: answer).sealed(with: vault) == nil)
        }
    }

    @Test("is refused when a single bit of it was changed, and with another key ring")
    func altered() throws {
        let vault = try vault()
        let result = RefreshResult(claim: claim, answer: try Sample.granted())
        let sealed = try #require(try result.sealed(with: vault))
        for place in stride(from: 10, to: sealed.bytes.count, by: 7) {
            var bytes = sealed.bytes
            bytes[place] ^= 1
            #expect(throws: CryptoError.self) { try RefreshResult.open(SealedSecret(bytes: bytes), with: vault) }
        }
        let other = try self.vault()
        #expect(throws: CryptoError.self) { try RefreshResult.open(sealed, with: other) }
    }

    @Test("is refused when it is a token of the database")
    func foreign() throws {
        let vault = try vault()
        let token = try vault.seal(refreshToken: Secret("{}"), for: claim.grant).sealed
        #expect(throws: CryptoError.self) { try RefreshResult.open(token, with: vault) }
    }

    private struct Missing: Error {}
}
