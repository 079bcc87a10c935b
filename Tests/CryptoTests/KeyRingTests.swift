import Base
import Testing

@testable import Crypto

@Suite("Sealing")
struct KeyRingTests {
    private static let context = SealContext(owner: 42, column: "refresh_token")
    private static let token = Secret("1//a-refresh-token")

    @Test("gives back the sealed bytes, of any length", arguments: [0, 1, 15, 16, 17, 300, 65536])
    func roundTrip(length: Int) throws {
        let ring = try KeyRing(keys: [.random()])
        let secret = Secret(utf8: (0..<length).map { UInt8(truncatingIfNeeded: $0) })
        let sealed = try ring.seal(secret, for: Self.context)
        #expect(sealed.bytes.count == length + 38)
        #expect(sealed.keyID == ring.sealingKeyID)
        #expect(try ring.open(SealedSecret(bytes: sealed.bytes), for: Self.context) == secret)
    }

    /// Values made with another implementation (pyca/cryptography 48): key 0…31, nonce 100…111.
    ///
    /// The key is derived by HKDF-SHA256 with the salt "refresh-worker sealed 2". The info is the length of the owner
    /// in one byte, the owner and the column.
    @Test(
        "is AES-256-GCM over the documented bytes",
        arguments: [
            (
                "020830303131616166666465666768696a6b6c6d6e6fa9b24d29ffa33c078d0db92e81e5e345"
                    + "43f62bf65908b60320007b3c31b4a6465ff6398666b4d504",
                SealContext(owner: -81_985_529_216_486_896, column: "refresh_token"), "1//a-known-refresh-token"
            ),
            (
                "020830303131616166666465666768696a6b6c6d6e6fb7e13d4bffde12cf56bae1287261d60e"
                    + "fa4f8faf84dab777d5eb70",
                SealContext(owner: Array(0..<16), column: "session_successor"), "a-successor"
            ),
        ]
    )
    func knownValue(hexadecimal: String, context: SealContext, secret: String) throws {
        let folder = try TemporaryFolder()
        let ring = try KeyRingFile.load(path: folder.write("0011aaff \(KeyText.counting)\n"))
        let bytes = try #require(Hexadecimal.decode(hexadecimal))
        #expect(try ring.open(SealedSecret(bytes: bytes), for: context).reveal() == secret)
    }

    @Test("is written in version 2")
    func version() throws {
        let ring = try KeyRing(keys: [.random()])
        #expect(try ring.seal(Self.token, for: Self.context).bytes[0] == 2)
    }

    @Test("is refused in any other version", arguments: [0, 1, 3, 255] as [UInt8])
    func otherVersion(version: UInt8) throws {
        let ring = try KeyRing(keys: [.random()])
        var bytes = try ring.seal(Self.token, for: Self.context).bytes
        bytes[0] = version
        #expect(throws: CryptoError.notSealed) { try SealedSecret(bytes: bytes) }
    }

    @Test(
        "opens only in the place for which it was sealed",
        arguments: [
            SealContext(owner: 43, column: "refresh_token"),
            SealContext(owner: -42, column: "refresh_token"),
            SealContext(owner: 42 << 32, column: "refresh_token"),
            SealContext(owner: 42, column: "access_token"),
            SealContext(owner: 42, column: "refresh_toke"),
            SealContext(owner: 42, column: ""),
            SealContext(owner: Array("\0\0\0\0\0\0\0*refresh_".utf8), column: "token"),
        ]
    )
    func wrongContext(other: SealContext) throws {
        let ring = try KeyRing(keys: [.random()])
        let sealed = try ring.seal(Self.token, for: Self.context)
        #expect(throws: CryptoError.damaged(ring.sealingKeyID)) { try ring.open(sealed, for: other) }
    }

    @Test("needs the key that sealed it")
    func wrongKey() throws {
        let ring = try KeyRing(keys: [.random()])
        let sealed = try ring.seal(Self.token, for: Self.context)
        let otherRing = try KeyRing(keys: [.random()])
        #expect(throws: CryptoError.unknownKey(ring.sealingKeyID)) { try otherRing.open(sealed, for: Self.context) }
    }

    @Test("fails with another key of the same id")
    func sameName() throws {
        let folder = try TemporaryFolder()
        let ring = try KeyRingFile.load(path: folder.write("0011aaff \(KeyText.counting)", to: "one"))
        let other = try KeyRingFile.load(path: folder.write("0011aaff \(KeyText.zeroes)", to: "two"))
        let sealed = try ring.seal(Self.token, for: Self.context)
        #expect(throws: CryptoError.damaged(ring.sealingKeyID)) { try other.open(sealed, for: Self.context) }
    }

    @Test("fails to open when any bit of any byte is flipped")
    func everyFlip() throws {
        let ring = try KeyRing(keys: [.random()])
        let sealed = try ring.seal(Self.token, for: Self.context)
        for index in sealed.bytes.indices {
            for bit in 0..<8 {
                var bytes = sealed.bytes
                bytes[index] ^= 1 << UInt8(bit)
                #expect(throws: CryptoError.self, "byte \(index), bit \(bit)") {
                    try ring.open(SealedSecret(bytes: bytes), for: Self.context)
                }
            }
        }
    }

    @Test("fails to open when bytes are removed or added")
    func everyLength() throws {
        let ring = try KeyRing(keys: [.random()])
        let sealed = try ring.seal(Self.token, for: Self.context)
        for length in 0..<sealed.bytes.count {
            #expect(throws: CryptoError.self, "\(length) bytes") {
                try ring.open(SealedSecret(bytes: Array(sealed.bytes.prefix(length))), for: Self.context)
            }
        }
        #expect(throws: CryptoError.damaged(ring.sealingKeyID)) {
            try ring.open(SealedSecret(bytes: sealed.bytes + [0]), for: Self.context)
        }
    }

    @Test("has another nonce each time")
    func nonces() throws {
        let ring = try KeyRing(keys: [.random()])
        let nonces = try (0..<1000).map { _ in try ring.seal(Self.token, for: Self.context).bytes[10..<22] }
        #expect(Set(nonces).count == 1000)
    }

    @Test("seals with the first key that is not pending, and opens with all")
    func order() throws {
        let pending = try RingKey.random(isPending: true)
        let first = try RingKey.random()
        let second = try RingKey.random()
        let ring = try KeyRing(keys: [pending, first, second])
        #expect(ring.sealingKeyID == first.id)
        #expect(ring.keyIDs == [pending.id, first.id, second.id])
        #expect(ring.keys.map { $0.role == .pending } == [true, false, false])
        let older = try KeyRing(keys: [second]).seal(Self.token, for: Self.context)
        #expect(try ring.open(older, for: Self.context) == Self.token)
    }

    @Test("needs one key that may seal, and unique ids")
    func badRings() throws {
        let key = try RingKey.random()
        #expect(throws: fault("", .noSealingKey)) { try KeyRing(keys: []) }
        #expect(throws: fault("", .noSealingKey)) {
            try KeyRing(keys: [.random(isPending: true)])
        }
        #expect(throws: fault("", .duplicateKey(key.id))) { try KeyRing(keys: [key, key]) }
    }

    @Test("leaves no library error behind that a later failure would report")
    func errorsDoNotLinger() throws {
        let ring = try KeyRing(keys: [.random()])
        let sealed = try ring.seal(Self.token, for: Self.context)
        let elsewhere = SealContext(owner: 1, column: "")
        #expect(throws: CryptoError.damaged(ring.sealingKeyID)) { try ring.open(sealed, for: elsewhere) }
        #expect(try ring.open(sealed, for: Self.context) == Self.token)
    }
}

@Suite("A sealed value's bytes")
struct SealedSecretTests {
    @Test("are accepted or refused, and random ones never open", arguments: 0..<8 as Range<UInt64>)
    func randomBytes(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let ring = try KeyRing(keys: [.random()])
        let header = [2, 8] as [UInt8] + Array(ring.sealingKeyID.description.utf8)
        var shaped = 0
        for _ in 0..<2000 {
            let count = Int.random(in: 0...80, using: &generator)
            var bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            let borrowed = Int.random(in: 0...header.count, using: &generator)
            bytes.replaceSubrange(0..<min(borrowed, bytes.count), with: header.prefix(min(borrowed, bytes.count)))
            do {
                let sealed = try SealedSecret(bytes: bytes)
                shaped += 1
                #expect(throws: CryptoError.self) { try ring.open(sealed, for: SealContext(owner: 1, column: "")) }
            } catch {
                #expect(error == .notSealed)
            }
        }
        #expect(shaped > 0, "no bytes had the shape, so nothing was tried")
    }
}

@Suite("A key's id")
struct KeyIDTests {
    @Test("is eight lowercase hexadecimal digits", arguments: ["00000000", "0123abcd", "ffffffff", "00000a00"])
    func good(text: String) throws {
        #expect(try #require(KeyID(text)).description == text)
    }

    @Test(
        "refuses every other text",
        arguments: ["", "0123abc", "0123abcde", "0123ABCD", "0123abcg", "+123abcd", "0123 bcd", "ééabcd"]
    )
    func bad(text: String) {
        #expect(KeyID(text) == nil)
    }

    @Test("sorts as its text does")
    func order() throws {
        let texts = ["ffffffff", "00000001", "a0000000", "0fffffff"]
        #expect(texts.compactMap { KeyID($0) }.sorted().map(\.description) == texts.sorted())
    }
}
