import Base
import Crypto
import Testing

@Suite("A signer of tokens")
struct TokenSignerTests {
    private static let now = Timestamp(secondsSince1970: 1_300_000_000)
    private static let secret = Secret("0123456789abcdef0123456789abcdef")
    private static let otherSecret = Secret("fedcba9876543210fedcba9876543210")

    /// The token of RFC 7515, appendix A.1, and its key.
    private static let standardToken = [
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9",
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    ].joined(separator: ".")
    private static let standardKey =
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"

    /// Makes a correctly signed token with any header and claims.
    private static func token(header: String, claims: String, by secret: Secret = secret) -> String {
        let signed = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return signed + "." + Base64URL.encode(MessageKey(secret).authenticate(Array(signed.utf8)))
    }

    private static func goodClaims() -> JSONLine {
        var claims = JSONLine()
        claims.field("sub", "user-1")
        claims.field("exp", 1_300_000_060)
        return claims
    }

    @Test("accepts the token of RFC 7515, appendix A.1")
    func standard() throws {
        let signer = try TokenSigner(secrets: [Secret(utf8: #require(Base64URL.decode(Self.standardKey)))])
        let claims = try signer.claims(of: Self.standardToken, at: Self.now)
        #expect(claims["iss"]?.string == "joe")
        #expect(claims["http://example.com/is_root"]?.bool == true)
        #expect(throws: CryptoError.expired) {
            try signer.claims(of: Self.standardToken, at: Timestamp(secondsSince1970: 1_300_819_380))
        }
    }

    @Test("accepts its own tokens, and those of the previous secret")
    func rotation() throws {
        let old = try TokenSigner(secrets: [Self.secret])
        let both = try TokenSigner(secrets: [Self.otherSecret, Self.secret])
        let new = try TokenSigner(secrets: [Self.otherSecret])
        let oldToken = old.sign(Self.goodClaims()).reveal()
        let newToken = both.sign(Self.goodClaims()).reveal()
        #expect(try old.claims(of: oldToken, at: Self.now)["sub"]?.string == "user-1")
        #expect(try both.claims(of: oldToken, at: Self.now)["sub"]?.string == "user-1")
        #expect(try both.claims(of: newToken, at: Self.now)["sub"]?.string == "user-1")
        #expect(try new.claims(of: newToken, at: Self.now)["sub"]?.string == "user-1")
        #expect(throws: CryptoError.badSignature) { try new.claims(of: oldToken, at: Self.now) }
        #expect(throws: CryptoError.badSignature) { try old.claims(of: newToken, at: Self.now) }
    }

    @Test(
        "accepts one or two secrets of at least 32 bytes",
        arguments: [
            ([], CryptoError.secretCount(0)),
            ([32, 32, 32], .secretCount(3)),
            ([31], .shortSecret(position: 1, byteCount: 31)),
            ([32, 0], .shortSecret(position: 2, byteCount: 0)),
        ]
    )
    func secrets(lengths: [Int], error: CryptoError) {
        let secrets = lengths.map { Secret(String(repeating: "k", count: $0)) }
        #expect(throws: error) { try TokenSigner(secrets: secrets) }
    }

    @Test(
        "refuses another algorithm, type or extension, however well it is signed",
        arguments: [
            #"{"alg":"none"}"#, #"{"alg":"None"}"#, #"{"alg":"hs256"}"#, #"{"alg":"HS512"}"#, #"{"alg":"RS256"}"#,
            #"{"alg":["HS256"]}"#, #"{"alg":null}"#, #"{"typ":"JWT"}"#, #"{"alg":"HS256","typ":"JWE"}"#,
            #"{"alg":"HS256","typ":7}"#, #"{"alg":"HS256","crit":["exp"]}"#, #"{"alg":"HS256","crit":null}"#,
            #"{"alg":"HS256","alg":"none"}"#,
        ]
    )
    func headers(header: String) throws {
        let signer = try TokenSigner(secrets: [Self.secret])
        let token = Self.token(header: header, claims: #"{"exp":1300000060}"#)
        #expect(throws: CryptoError.unsupportedAlgorithm) { try signer.claims(of: token, at: Self.now) }
    }

    @Test(
        "accepts the types of the standards, in any case, or none",
        arguments: [
            #"{"alg":"HS256"}"#, #"{"alg":"HS256","typ":"jwt"}"#, #"{"typ":"at+JWT","alg":"HS256","kid":"1"}"#,
            #"{"alg":"HS256","typ":"application/at+jwt"}"#,
        ]
    )
    func types(header: String) throws {
        let signer = try TokenSigner(secrets: [Self.secret])
        let token = Self.token(header: header, claims: #"{"exp":1300000060}"#)
        #expect(try signer.claims(of: token, at: Self.now)["exp"]?.integer == 1_300_000_060)
    }

    @Test(
        "checks the times of a token with a valid signature",
        arguments: [
            (#"{"exp":1300000000.5}"#, nil),
            (#"{"exp":1.3000001e9}"#, nil),
            (#"{"exp":1300000000}"#, .expired),
            (#"{"exp":1299999999.9}"#, .expired),
            (#"{"exp":0}"#, .expired),
            (#"{"exp":-1}"#, .expired),
            ("{}", .noExpiry),
            (#"{"exp":null}"#, .noExpiry),
            (#"{"exp":"1300000060"}"#, .noExpiry),
            (#"{"exp":1e999}"#, .noExpiry),
            (#"{"exp":[1300000060]}"#, .noExpiry),
            (#"{"exp":1300000060,"nbf":1300000060}"#, nil),
            (#"{"exp":1300000099,"nbf":1300000061}"#, .notYetValid),
            (#"{"exp":1300000060,"iat":1300000060}"#, nil),
            (#"{"exp":1300000099,"iat":1300000060.1}"#, nil),
            (#"{"exp":1300009999,"iat":1300003600}"#, nil),
            (#"{"exp":1300009999,"iat":1300003601}"#, .notYetValid),
            (#"{"exp":1300099999,"iat":1300086400}"#, .notYetValid),
            (#"{"exp":1300000060,"iat":"yesterday"}"#, .malformed),
            (#"["exp"]"#, .malformed),
            ("", .malformed),
        ] as [(String, CryptoError?)]
    )
    func times(claims: String, refusal: CryptoError?) throws {
        let signer = try TokenSigner(secrets: [Self.secret])
        let good = Self.token(header: #"{"alg":"HS256"}"#, claims: claims)
        let forged = Self.token(header: #"{"alg":"HS256"}"#, claims: claims, by: Self.otherSecret)
        if let refusal {
            #expect(throws: refusal) { try signer.claims(of: good, at: Self.now) }
        } else {
            #expect(try signer.claims(of: good, at: Self.now)["exp"] != nil)
        }
        #expect(throws: CryptoError.badSignature) { try signer.claims(of: forged, at: Self.now) }
    }

    @Test(
        "refuses a text with another form",
        arguments: [
            "", ".", "..", "...", "a.b", "a.b.c", "eyJhbGciOiJIUzI1NiJ9.e30.", "eyJhbGciOiJIUzI1NiJ9.e30",
            "eyJhbGciOiJIUzI1NiJ9.e30.AAAA.AAAA", " eyJhbGciOiJIUzI1NiJ9.e30.AAAA", "eyJhbGciOiJIUzI1NiJ9.e30.AAAA=",
            "W10.e30.AAAA", "eyJhbGciOiJIUzI1NiJ9.e30.AAAA\n",
        ]
    )
    func shapes(token: String) throws {
        let signer = try TokenSigner(secrets: [Self.secret])
        #expect(throws: CryptoError.malformed) { try signer.claims(of: token, at: Self.now) }
    }

    @Test("refuses a token of more than 8 KiB")
    func length() throws {
        let signer = try TokenSigner(secrets: [Self.secret])
        func token(padding: Int) -> String {
            Self.token(
                header: #"{"alg":"HS256"}"#,
                claims: #"{"exp":1300000060,"pad":"\#(String(repeating: "x", count: padding))"}"#
            )
        }
        let largest = token(padding: 6030)
        #expect((8100...8192).contains(largest.utf8.count))
        #expect(try signer.claims(of: largest, at: Self.now)["pad"] != nil)
        #expect(throws: CryptoError.malformed) { try signer.claims(of: token(padding: 6200), at: Self.now) }
    }

    @Test("rejects a token that differs from a valid one in any byte", arguments: [UInt64(7), 8, 9])
    func mutations(seed: UInt64) throws {
        let signer = try TokenSigner(secrets: [Self.secret, Self.otherSecret])
        let good = Array(signer.sign(Self.goodClaims()).reveal().utf8)
        let random = SeededRandom(seed: seed)
        for round in 0..<4000 {
            var bytes = good
            for _ in 0...Int(random.nextBits() % 3) {
                let position = Int(random.nextBits() % UInt64(bytes.count))
                switch random.nextBits() % 3 {
                case 0: bytes[position] ^= UInt8(1 << (random.nextBits() % 8))
                case 1: bytes.remove(at: position)
                default: bytes.insert(UInt8(truncatingIfNeeded: random.nextBits()), at: position)
                }
            }
            guard bytes != good else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(throws: CryptoError.self, "seed \(seed), round \(round)") {
                try signer.claims(of: text, at: Self.now)
            }
        }
    }

    @Test("is not confused by a public key used as the shared secret")
    func keyConfusion() throws {
        let key = try RSAPrivateKey.generate()
        let pem = try key.pem()
        let verifier = try SignedToken(
            key.signedToken(Self.goodClaims(), keyID: "1").reveal(),
            limit: 8192
        )
        #expect(verifier.keyID == "1")
        let forged = Self.token(header: #"{"alg":"HS256"}"#, claims: #"{"exp":1300000060}"#, by: pem)
        #expect(throws: CryptoError.unsupportedAlgorithm) { try SignedToken(forged, limit: 8192) }
        let signer = try TokenSigner(secrets: [pem])
        let asserted = try key.signedToken(Self.goodClaims(), keyID: "1").reveal()
        #expect(throws: CryptoError.unsupportedAlgorithm) { try signer.claims(of: asserted, at: Self.now) }
    }

    @Test("never prints its secrets")
    func rendering() throws {
        let signer = try TokenSigner(secrets: [Self.secret])
        let values: [Any] = [
            signer, MessageKey(Self.secret), signer.sign(Self.goodClaims()), try RSAPrivateKey.generate(),
            CryptoError.shortSecret(position: 1, byteCount: 3),
        ]
        for value in values {
            for (way, text) in renderings(of: value) {
                #expect(!text.contains("0123456789abcdef"), "\(way)")
                #expect(!text.contains("eyJ"), "\(way)")
            }
        }
    }
}
