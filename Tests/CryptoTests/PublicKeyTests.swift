import Base
import Testing

@testable import Crypto

@Suite("A key of P-256")
struct PublicKeyTests {
    /// The key and the token of RFC 7515, appendix A.3.
    private static let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
    private static let y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
    private static let token = [
        "eyJhbGciOiJFUzI1NiJ9",
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    ]

    private static func bytes(_ text: String) throws -> [UInt8] { try #require(Base64URL.decode(text)) }

    private static func standardKey() throws -> PublicKey { try PublicKey(x: bytes(x), y: bytes(y)) }

    @Test("checks the signature of RFC 7515, appendix A.3")
    func standard() throws {
        let token = try SignedToken(Self.token.joined(separator: "."), limit: 8192)
        #expect(token.claims["iss"]?.string == "joe")
        #expect(try token.verifies(with: Self.standardKey()))
        let changed = Base64URL.encode(Array(#"{"iss":"eve"}"#.utf8))
        let forged = try SignedToken("\(Self.token[0]).\(changed).\(Self.token[2])", limit: 8192)
        #expect(try !forged.verifies(with: Self.standardKey()))
    }

    @Test("refuses a signature with any one bit changed, another length or another form")
    func changedSignature() throws {
        let key = try Self.standardKey()
        let signed = Array("\(Self.token[0]).\(Self.token[1])".utf8)
        let good = try Self.bytes(Self.token[2])
        #expect(key.verifies(signature: good, of: signed))
        for bit in 0..<good.count * 8 {
            var forged = good
            forged[bit / 8] ^= 1 << (bit % 8)
            #expect(!key.verifies(signature: forged, of: signed), "bit \(bit)")
        }
        let zero = [UInt8](repeating: 0, count: 32)
        let (r, s) = (Array(good.prefix(32)), Array(good.suffix(32)))
        let encoded: [UInt8] = [0x30, 0x44, 0x02, 0x20] + r + [0x02, 0x20] + s
        let others: [[UInt8]] = [[], good + [0], Array(good.dropLast()), [0] + good, zero + zero, r + zero, zero + s]
        #expect(!key.verifies(signature: encoded, of: signed))
        for forged in others { #expect(!key.verifies(signature: forged, of: signed)) }
    }

    @Test("is only for its own algorithm, whatever the token says")
    func algorithm() throws {
        let rsa = try RSAPrivateKey.generate()
        let numbers = try rsa.publicNumbers()
        let rsaKey = try PublicKey(modulus: numbers.modulus, exponent: numbers.exponent)
        let elliptic = try SignedToken(Self.token.joined(separator: "."), limit: 8192)
        #expect(!elliptic.verifies(with: rsaKey))
        let header = Base64URL.encode(Array(#"{"alg":"ES256"}"#.utf8))
        let signature = try rsa.sign(Array("\(header).e30".utf8))
        let mixed = try SignedToken("\(header).e30.\(Base64URL.encode(signature))", limit: 8192)
        #expect(!mixed.verifies(with: rsaKey))
        #expect(rsaKey.algorithm == .rs256)
        #expect(try Self.standardKey().algorithm == .es256)
    }

    @Test("is refused unless its coordinates are a point of the curve")
    func point() throws {
        let (x, y) = (try Self.bytes(Self.x), try Self.bytes(Self.y))
        var other = y
        other[31] ^= 1
        let zero = [UInt8](repeating: 0, count: 32)
        let wrong = [
            (x, other), (y, x), (zero, zero), ([], []), (x, [0] + y), (Array(x.dropLast()), y),
            ([UInt8](repeating: 0xff, count: 32), y),
        ]
        for (x, y) in wrong { #expect(throws: CryptoError.point) { try PublicKey(x: x, y: y) } }
    }

    /// A key made only for this test, and its public point.
    private static let privateKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgfl6nFb4UeBTDp38a
        fyVMdNDnTY6ASYtEnS1TjIGNpA6hRANCAAScDq11lZbaSUWupF0/aJ65b5FZfjUg
        zuVrCu3g2VMjI9jeBeb2lOMvtfLg4LmNLhYDl24Hv0IRMxLk9466K6z5
        -----END PRIVATE KEY-----
        """
    private static let publicPoint = (
        x: "9c0ead759596da4945aea45d3f689eb96f91597e3520cee56b0aede0d9532323",
        y: "d8de05e6f694e32fb5f2e0e0b98d2e1603976e07bf42113312e4f78eba2bacf9"
    )

    /// Of a few hundred signatures, some have numbers with a leading zero byte.
    @Test("checks signatures whose numbers are short")
    func shortNumbers() throws {
        let key = try PublicKey(
            x: try #require(Hexadecimal.decode(Self.publicPoint.x)),
            y: try #require(Hexadecimal.decode(Self.publicPoint.y))
        )
        let signer = try KeyHandle(pem: Secret(Self.privateKey))
        var (hasShortR, hasShortS, number) = (false, false, 0)
        while !(hasShortR && hasShortS), number < 20_000 {
            number += 1
            let message = Array("message \(number)".utf8)
            let signature = try Self.fixedLength(signer.sign(message))
            try #require(key.verifies(signature: signature, of: message))
            try #require(!key.verifies(signature: signature, of: message + [0]))
            hasShortR = hasShortR || signature[0] == 0
            hasShortS = hasShortS || signature[32] == 0
        }
        #expect(hasShortR && hasShortS)
    }

    /// Turns the DER structure of OpenSSL into two numbers of 32 bytes.
    private static func fixedLength(_ der: [UInt8]) -> [UInt8] {
        var rest = der.dropFirst(2)
        return (0..<2).flatMap { _ -> [UInt8] in
            let count = Int(rest[rest.startIndex + 1])
            let number = rest.dropFirst(2).prefix(count).drop { $0 == 0 }
            rest = rest.dropFirst(2 + count)
            return [UInt8](repeating: 0, count: 32 - number.count) + number
        }
    }
}
