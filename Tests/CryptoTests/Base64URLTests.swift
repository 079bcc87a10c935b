import Base
import Crypto
import Testing

@Suite("URL-safe Base64")
struct Base64URLTests {
    /// RFC 4648, section 10, without padding; the last one is from RFC 7515, appendix C.
    @Test(
        "encodes bytes as in the standards",
        arguments: [
            ("", []), ("Zg", [0x66]), ("Zm8", [0x66, 0x6f]), ("Zm9v", [0x66, 0x6f, 0x6f]),
            ("Zm9vYg", [0x66, 0x6f, 0x6f, 0x62]), ("Zm9vYmE", [0x66, 0x6f, 0x6f, 0x62, 0x61]),
            ("A-z_4ME", [3, 236, 255, 224, 193]),
        ] as [(String, [UInt8])]
    )
    func vectors(text: String, bytes: [UInt8]) {
        #expect(Base64URL.encode(bytes) == text)
        #expect(Base64URL.decode(text) == bytes)
    }

    @Test(
        "accepts only the canonical encoding",
        arguments: ["Zg==", "Zh", "Zm9", "Z", "Zm9vY", "A+z/4ME", " Zm8", "Zm8\n", "Zm\u{0}8", "Zmö8", "."]
    )
    func refuses(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test("decodes any encoded bytes", arguments: [UInt64(1), 2, 3])
    func roundTrip(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        for length in 0..<300 {
            let bytes = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.nextBits()) }
            let text = Base64URL.encode(bytes)
            #expect(Base64URL.decode(text) == bytes, "seed \(seed), length \(length)")
        }
    }
}

@Suite("Base64 with padding")
struct Base64Tests {
    @Test(
        "encodes and decodes, also secrets",
        arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("?>~", "Pz5+"), ("??>", "Pz8+")]
    )
    func vectors(text: String, encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded.utf8) == Array(text.utf8))
        #expect(Base64.decode(Secret(encoded)) == Secret(text))
    }

    @Test(
        "refuses any other text",
        arguments: ["Zg", "Zg=", "Zh==", "Zg==\n", "Pz5-", "Pz_+", "====", "Z===", "Zg==Zg=="]
    )
    func malformed(text: String) {
        #expect(Base64.decode(text.utf8) == nil)
        #expect(Base64.decode(Secret(text)) == nil)
    }
}
