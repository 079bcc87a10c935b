import Crypto
import TestSupport
import Testing

@testable import Base
@testable import GoogleSandbox

@Suite("The sandbox's security events", .timeLimit(.minutes(10)))
struct SecurityEventTests {
    let fixture = SandboxFixture()

    private func token(_ body: String) async throws -> SignedToken {
        let answer = try #require(await fixture.control("security-events", body))
        #expect(answer.status == 200)
        return try SignedToken(#require(answer.body["token"]?.stringValue), limit: 65_536)
    }

    private func keys() async throws -> [String: PublicKey] {
        let answer = try #require(await fixture.ask("GET", "/oauth2/v3/certs"))
        guard case .array(let entries)? = answer.body["keys"] else { return [:] }
        var keys: [String: PublicKey] = [:]
        for entry in entries {
            let modulus = try #require(Base64URL.decode(entry["n"]?.stringValue ?? ""))
            let exponent = try #require(Base64URL.decode(entry["e"]?.stringValue ?? ""))
            keys[entry["kid"]?.stringValue ?? ""] = try PublicKey(modulus: modulus, exponent: exponent)
        }
        return keys
    }

    private func verifies(_ token: SignedToken) async throws -> Bool {
        try await keys()[token.keyID ?? ""].map { token.verifies(with: $0) } ?? false
    }

    @Test("name the account of the requested grant, and are signed by a published key")
    func good() async throws {
        await fixture.grant("1//0a", sub: "s7")
        let token = try await token(#"{"type":"tokens-revoked","email":"s7@example.com","toe":5}"#)
        #expect(try await verifies(token))
        #expect(token.claims["iss"]?.string == "https://accounts.google.com/")
        #expect(token.claims["aud"]?.string == "c1")
        #expect(token.claims["toe"]?.integer == 5)
        let type = "https://schemas.openid.net/secevent/oauth/event-type/tokens-revoked"
        #expect(token.claims["events"]?[type]?["subject"]?["sub"]?.string == "s7")
        let configuration = try #require(await fixture.ask("GET", "/.well-known/risc-configuration"))
        #expect(configuration.body["jwks_uri"] == "http://127.0.0.1/oauth2/v3/certs")
    }

    @Test("name a refresh token by its beginning or by its double hash")
    func refreshTokens() async throws {
        await fixture.grant("1//0e0123456789abcdef")
        let type = "https://schemas.openid.net/secevent/oauth/event-type/token-revoked"
        let prefix = try await token(#"{"type":"token-revoked","refresh_token":"1//0e0123456789abcdef"}"#)
        #expect(prefix.claims["events"]?[type]?["subject"]?["token"]?.string == "1//0e0123456789a")
        let hash = try await token(#"{"type":"token-revoked","refresh_token":"1//0e0123456789abcdef","form":"hash"}"#)
        let subject = try #require(hash.claims["events"]?[type]?["subject"])
        #expect(subject["token_identifier_alg"]?.string == "hash_base64_sha512_sha512")
        #expect(subject["token"]?.string?.hasSuffix("==") == true && subject["token"]?.string?.utf8.count == 88)
    }

    @Test("can be forged in every way", arguments: ["bad_signature", "unknown_kid"])
    func forged(way: String) async throws {
        let token = try await token(#"{"type":"verification","state":"x","forge":"\#(way)"}"#)
        #expect(try await !verifies(token))
    }

    @Test("can claim another algorithm", arguments: ["alg_none", "hs256"])
    func otherAlgorithms(way: String) async throws {
        let answer = await fixture.control("security-events", #"{"type":"verification","forge":"\#(way)"}"#)
        let text = try #require(answer?.body["token"]?.stringValue)
        #expect(throws: CryptoError.self) { try SignedToken(text, limit: 65_536) }
    }

    @Test("outlive a rotation of the key, if the old one is kept")
    func rotation() async throws {
        let token = try await token(#"{"type":"verification"}"#)
        await fixture.control("security-events/rotate-key")
        #expect(try await verifies(token))
        #expect(try await keys().count == 2)
        await fixture.control("security-events/rotate-key", #"{"keep_old":false}"#)
        #expect(try await !verifies(token))
        await fixture.control("reset")
        #expect(try await keys().count == 1, "a worker that has fetched the key may still use it")
    }

    @Test("are verified through a stream that only a service account manages")
    func stream() async throws {
        let account = try #require(await fixture.control("service-accounts"))
        let pem = try #require(account.body["private_key"]?.stringValue)
        let keyID = try #require(account.body["private_key_id"]?.stringValue)
        let email = try #require(account.body["client_email"]?.stringValue)
        func bearer(aud: String = "https://risc.googleapis.com/google.identity.risc.v1beta.RiscManagementService")
            throws -> String
        {
            let now = fixture.time.now.milliseconds / 1000
            var claims = JSONLine()
            claims.field("iss", email)
            claims.field("sub", email)
            claims.field("aud", aud)
            claims.field("iat", now)
            claims.field("exp", now + 3600)
            return try RSAPrivateKey(pem: Secret(pem)).signedToken(claims, keyID: keyID).reveal()
        }
        let good = try bearer()
        #expect(await fixture.ask("GET", "/v1beta/stream", bearer: good)?.status == 404)
        #expect(await fixture.ask("GET", "/v1beta/stream")?.status == 401)
        #expect(await fixture.ask("GET", "/v1beta/stream", bearer: try bearer(aud: "else"))?.status == 401)
        await fixture.control("security-events/stream", #"{"forbidden":true}"#)
        #expect(await fixture.ask("GET", "/v1beta/stream", bearer: good)?.status == 403)
        fixture.time.advance(by: .seconds(3601))
        #expect(await fixture.ask("GET", "/v1beta/stream", bearer: good)?.status == 401)
    }
}
