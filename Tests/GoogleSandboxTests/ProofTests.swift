import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import GoogleSandbox

@Suite("The sandbox binds refresh tokens to keys", .timeLimit(.minutes(10)))
struct ProofTests {
    let fixture = SandboxFixture()
    let key: BindingKey
    let other: BindingKey

    init() throws {
        key = try #require(RingKey.randomBinding().binding)
        other = try #require(RingKey.randomBinding().binding)
    }

    private static let exchange = "authorization_code"
    private static let refresh = "refresh_token"

    /// Makes a proof with good claims, of which some are changed. `nil` leaves a claim out.
    private func proof(
        by key: BindingKey? = nil,
        id: String? = nil,
        nonce: String? = nil,
        secondsOff: Int64 = 0,
        method: String = "POST",
        url: String = "http://127.0.0.1:8099/token"
    ) -> String {
        var claims = JSONLine()
        claims.field("htm", method)
        claims.field("htu", url)
        claims.field("iat", fixture.time.now.milliseconds / 1000 + secondsOff)
        claims.field("jti", id ?? "id-\(SystemRandom().nextBits())")
        if let nonce { claims.field("nonce", nonce) }
        return (key ?? self.key).proof(claims)
    }

    private func newCode() async throws -> String {
        let answer = await fixture.control("codes", #"{"client_id":"c1","sub":"s1","email":"s1@example.com"}"#)
        return try #require(answer?.body["code"]?.stringValue)
    }

    private func hash(_ code: String) -> String { Base64URL.encode(Digest.sha256(Array(code.utf8))) }

    private func exchange(_ code: String, proof: String?) async throws -> SandboxFixture.Answer {
        let form = ["client_id": "c1", "grant_type": Self.exchange, "redirect_uri": "", "code": code]
        return try #require(await fixture.ask("POST", "/token", form: form, proof: proof))
    }

    private func refresh(_ token: String, proof: String?) async throws -> SandboxFixture.Answer {
        let form = ["client_id": "c1", "grant_type": Self.refresh, "refresh_token": token]
        return try #require(await fixture.ask("POST", "/token", form: form, proof: proof))
    }

    /// Exchanges a code as a client does, and returns the bound refresh token.
    private func boundToken() async throws -> String {
        let code = try await newCode()
        let challenge = try await exchange(code, proof: proof(id: hash(code)))
        #expect(challenge.status == 400 && challenge.error == "use_dpop_nonce")
        let nonce = try #require(challenge.header("DPoP-Nonce"))
        let answer = try await exchange(code, proof: proof(id: hash(code), nonce: nonce))
        #expect(answer.status == 200)
        #expect(answer.body["token_type"] == "Bearer")
        return try #require(answer.body["refresh_token"]?.stringValue)
    }

    private func nonce(for token: String) async throws -> String {
        let challenge = try await refresh(token, proof: proof())
        #expect(challenge.error == "use_dpop_nonce")
        return try #require(challenge.header("DPoP-Nonce"))
    }

    @Test("by the exchange of a code, and wants a proof at each refresh from then on")
    func bound() async throws {
        let token = try await boundToken()
        #expect(try await refresh(token, proof: nil).error == "invalid_dpop_proof")
        let nonce = try await nonce(for: token)
        let answer = try await refresh(token, proof: proof(nonce: nonce))
        #expect(answer.status == 200)
        #expect(answer.header("DPoP-Nonce") == nonce)
        #expect(try await refresh(token, proof: proof(by: other, nonce: nonce)).error == "invalid_dpop_proof")
        #expect(try await refresh(token, proof: proof(nonce: nonce)).status == 200)
        #expect(await fixture.statistics()["proofs"] == 4)
    }

    @Test("and accepts a code without a proof as before")
    func unbound() async throws {
        let answer = try await exchange(try await newCode(), proof: nil)
        #expect(answer.status == 200)
        #expect(answer.header("DPoP-Nonce") == nil)
        let token = try #require(answer.body["refresh_token"]?.stringValue)
        #expect(try await refresh(token, proof: nil).status == 200)
    }

    @Test("and does not spend a code that it answers with a challenge or a refusal")
    func code() async throws {
        let code = try await newCode()
        let nonce = try #require(try await exchange(code, proof: proof(id: hash(code))).header("DPoP-Nonce"))
        #expect(try await exchange(code, proof: proof(nonce: nonce)).error == "invalid_dpop_proof")
        #expect(try await exchange(code, proof: "x.y.z").error == "invalid_dpop_proof")
        #expect(try await exchange(code, proof: proof(id: hash(code), nonce: nonce)).status == 200)
        #expect(try await exchange(code, proof: proof(id: hash(code), nonce: nonce)).error == "invalid_dpop_proof")
    }

    @Test(
        "and refuses a proof of another request, or from another time",
        arguments: [
            (0, "GET", "http://127.0.0.1:8099/token"), (0, "POST", "http://127.0.0.1:8099/revoke"),
            (0, "POST", "http://127.0.0.1:80/token"), (61, "POST", "http://127.0.0.1:8099/token"),
            (-61, "POST", "http://127.0.0.1:8099/token"),
        ] as [(Int64, String, String)]
    )
    func refused(secondsOff: Int64, method: String, url: String) async throws {
        let token = try await boundToken()
        let nonce = try await nonce(for: token)
        let bad = proof(nonce: nonce, secondsOff: secondsOff, method: method, url: url)
        #expect(try await refresh(token, proof: bad).error == "invalid_dpop_proof")
        #expect(
            try await refresh(token, proof: proof(nonce: nonce, secondsOff: secondsOff.signum() * 60)).status == 200
        )
    }

    @Test("and refuses a proof that comes a second time")
    func replayed() async throws {
        let token = try await boundToken()
        let proof = proof(nonce: try await nonce(for: token))
        #expect(try await refresh(token, proof: proof).status == 200)
        #expect(try await refresh(token, proof: proof).error == "invalid_dpop_proof")
    }

    @Test("and refuses a proof whose signature is another key's")
    func forged() async throws {
        let token = try await boundToken()
        let nonce = try await nonce(for: token)
        let own = proof(nonce: nonce).split(separator: ".")
        let others = proof(by: other, nonce: nonce).split(separator: ".")
        #expect(try await refresh(token, proof: "\(own[0]).\(own[1]).\(others[2])").error == "invalid_dpop_proof")
    }

    @Test("and lets nonces expire by time and on request, and keeps those of exchanges apart")
    func nonces() async throws {
        let code = try await newCode()
        let ofExchange = try #require(try await exchange(code, proof: proof(id: hash(code))).header("DPoP-Nonce"))
        let token = try await boundToken()
        #expect(try await refresh(token, proof: proof(nonce: ofExchange)).error == "use_dpop_nonce")
        let first = try await nonce(for: token)
        fixture.time.advance(by: .seconds(200))
        let answer = try await refresh(token, proof: proof(nonce: first))
        #expect(answer.status == 200)
        let second = try #require(answer.header("DPoP-Nonce"))
        #expect(second != first)
        fixture.time.advance(by: .seconds(100))
        #expect(try await refresh(token, proof: proof(nonce: first)).error == "use_dpop_nonce")
        #expect(try await refresh(token, proof: proof(nonce: second)).status == 200)
        await fixture.control("expire-nonces")
        #expect(try await refresh(token, proof: proof(nonce: second)).error == "use_dpop_nonce")
        await fixture.control("settings", #"{"nonce_lifetime_ms":0}"#)
        let third = try await nonce(for: token)
        #expect(try await refresh(token, proof: proof(nonce: third)).error == "use_dpop_nonce")
    }

    @Test("and judges the time of a proof by a clock that a test can set")
    func clock() async throws {
        let token = try await boundToken()
        let nonce = try await nonce(for: token)
        await fixture.control("settings", #"{"clock_ahead_ms":600000}"#)
        #expect(try await refresh(token, proof: proof(nonce: nonce)).error == "invalid_dpop_proof")
        #expect(try await refresh(token, proof: proof(nonce: nonce, secondsOff: 600)).status == 200)
    }

    @Test("and revokes a bound token without a proof, as Google documents no other way")
    func revoked() async throws {
        let token = try await boundToken()
        #expect(await fixture.ask("POST", "/revoke", form: ["token": token])?.status == 200)
        let nonce = try await nonce(for: token)
        #expect(try await refresh(token, proof: proof(nonce: nonce)).error == "invalid_grant")
    }
}
