import Base
import Crypto
import Testing

@Suite("A token signed by another party")
struct SignedTokenTests {
    /// The key and the token of RFC 7515, appendix A.2.
    private static let modulus = [
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZ",
        "S-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2",
        "R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcD",
        "TW9gb54h4FRWyuXpoQ",
    ].joined()
    private static let signed = [
        "eyJhbGciOiJSUzI1NiJ9",
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
    ].joined(separator: ".")
    private static let signature = [
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CU",
        "Ar7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_d",
        "O--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0ig",
        "cN_IoypGlUPQGe77Rw",
    ].joined()

    private static func standardKey() throws -> PublicKey {
        try PublicKey(modulus: #require(Base64URL.decode(modulus)), exponent: [1, 0, 1])
    }

    @Test("is verified as in RFC 7515, appendix A.2")
    func standard() throws {
        let token = try SignedToken("\(Self.signed).\(Self.signature)", limit: 8192)
        #expect(token.keyID == nil)
        #expect(token.claims["iss"]?.string == "joe")
        #expect(try token.verifies(with: Self.standardKey()))
        let other = try RSAPrivateKey.generate().publicNumbers()
        #expect(try !token.verifies(with: PublicKey(modulus: other.modulus, exponent: other.exponent)))
    }

    @Test("is rejected when its claims were changed")
    func changedClaims() throws {
        let claims = Base64URL.encode(Array(#"{"iss":"eve"}"#.utf8))
        let token = try SignedToken("eyJhbGciOiJSUzI1NiJ9.\(claims).\(Self.signature)", limit: 8192)
        #expect(try !token.verifies(with: Self.standardKey()))
    }

    @Test(
        "is refused when it asks for another algorithm or an extension",
        arguments: [#"{"alg":"none"}"#, #"{"alg":"HS256"}"#, #"{"alg":"RS384"}"#, "{}", #"{"alg":"RS256","crit":[]}"#]
    )
    func headers(header: String) {
        let token = "\(Base64URL.encode(Array(header.utf8))).e30.AAAA"
        #expect(throws: CryptoError.unsupportedAlgorithm) { try SignedToken(token, limit: 8192) }
    }

    @Test("is refused beyond the limit, or when its claims are not an object")
    func shape() {
        #expect(throws: CryptoError.malformed) { try SignedToken("\(Self.signed).\(Self.signature)", limit: 100) }
        #expect(throws: CryptoError.malformed) { try SignedToken("eyJhbGciOiJSUzI1NiJ9.W10.AAAA", limit: 100) }
    }

    @Test("names the service account's key that signed it")
    func assertion() throws {
        let key = try RSAPrivateKey.generate()
        var claims = JSONLine()
        claims.field("iss", "worker@project.example")
        let assertion = try key.signedToken(claims, keyID: "key-1")
        let token = try SignedToken(assertion.reveal(), limit: 8192)
        let numbers = try key.publicNumbers()
        #expect(token.keyID == "key-1")
        #expect(token.claims["iss"]?.string == "worker@project.example")
        #expect(try token.verifies(with: PublicKey(modulus: numbers.modulus, exponent: numbers.exponent)))
    }
}
