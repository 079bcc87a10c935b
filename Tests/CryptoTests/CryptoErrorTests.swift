import Testing

@testable import Crypto

@Suite("An error of the cryptography")
struct CryptoErrorTests {
    @Test(
        "says what is wrong",
        arguments: [
            (CryptoError.notSealed, "the bytes are not a sealed value"),
            (.unreadable, "it is not an unencrypted private key in PEM"),
            (.otherKind, "it is not an RSA key"),
            (.size(bits: 1024), "it has 1024 bits, not 2048 to 8192"),
            (.exponent, "its exponent is not an odd number from 3 to 2^32"),
            (.evenModulus, "its modulus is even"),
            (.secretCount(3), "one secret signs tokens, or two while one is being rotated, not 3"),
            (
                .shortSecret(position: 2, byteCount: 8),
                "secret 2 has 8 bytes: a secret that signs tokens has at least 32"
            ),
            (.malformed, "it is not a signed token"),
            (.unsupportedAlgorithm, "the token is not signed by the expected algorithm"),
            (.badSignature, "the token's signature is wrong"),
            (.noExpiry, "the token has no expiry"),
            (.expired, "the token has expired"),
            (.notYetValid, "the token is not valid yet"),
            (.libraryFailure(call: "EVP_CipherUpdate", code: 255), "OpenSSL's EVP_CipherUpdate failed (error 0xff)"),
            (.signingFailure(call: "EVP_DigestSign"), "EVP_DigestSign failed"),
        ]
    )
    func text(error: CryptoError, text: String) {
        #expect("\(error)" == text)
    }

    @Test("names the key that sealed a value")
    func key() throws {
        let id = try #require(KeyID("0000000a"))
        #expect("\(CryptoError.unknownKey(id))" == "the key ring has no key 0000000a")
        #expect(
            "\(CryptoError.damaged(id))"
                == "the value sealed by key 0000000a is damaged, or belongs to another row or another key"
        )
    }
}
