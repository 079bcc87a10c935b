import Base
import Testing

@testable import Crypto

@Suite("Deriving keys")
struct KeyDerivationTests {
    /// The SHA-256 test cases of RFC 5869, appendix A: the first 32 bytes of the output are one block.
    @Test(
        "follows RFC 5869",
        arguments: [
            (
                [UInt8](repeating: 0x0b, count: 22), Array(0x00...0x0c), Array(0xf0...0xf9),
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
            ),
            (
                Array(0x00...0x4f), Array(0x60...0xaf), Array(0xb0...0xff),
                "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
            ),
            (
                [UInt8](repeating: 0x0b, count: 22), [], [],
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
            ),
        ] as [([UInt8], [UInt8], [UInt8], String)]
    )
    func vectors(secret: [UInt8], salt: [UInt8], purpose: [UInt8], key: String) throws {
        let derivation = KeyDerivation(from: Secret(utf8: secret), salt: salt)
        let derived = derivation.withKey(for: purpose) { Secret(copying: $0) }
        #expect(derived == Secret(utf8: try #require(Hexadecimal.decode(key))))
    }

    @Test("gives each purpose its own key")
    func purposes() {
        let derivation = KeyDerivation(from: Secret("a secret"), salt: [])
        let keys = [[], [0], [0, 0], [1]].map { purpose in derivation.withKey(for: purpose) { Secret(copying: $0) } }
        for (index, key) in keys.enumerated() {
            #expect(!keys[..<index].contains(key))
        }
    }
}
