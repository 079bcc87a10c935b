/// A secret as stored in the database.
///
/// | bytes | content |
/// |---|---|
/// | 1 | version, 1 or 2 |
/// | 1 | length of the key id, 8 |
/// | 8 | key id, in ASCII |
/// | 12 | nonce |
/// | any | ciphertext, as long as the secret |
/// | 16 | tag |
///
/// Both versions are AES-256-GCM. Version 1, which is only read, seals with the ring's key directly, and its tag covers
/// the row and column of the value. Version 2 seals with a key that is derived from the ring's key for them.
package struct SealedSecret: Hashable, Sendable {
    /// The offsets of the parts in a value of a given length.
    struct Layout {
        static let keyID = 2..<2 + KeyID.length
        static let minimumByteCount = keyID.upperBound + CipherContext.nonceLength + CipherContext.tagLength

        let nonce: Range<Int>
        let ciphertext: Range<Int>
        let tag: Range<Int>

        init(byteCount: Int) {
            nonce = Self.keyID.upperBound..<Self.keyID.upperBound + CipherContext.nonceLength
            tag = byteCount - CipherContext.tagLength..<byteCount
            ciphertext = nonce.upperBound..<tag.lowerBound
        }
    }

    enum Version: UInt8 {
        case ringKey = 1
        case derivedKey = 2
    }

    package let bytes: [UInt8]
    /// The id of the sealing key according to the value; only opening it proves the id.
    package let keyID: KeyID
    let version: Version

    /// Checks that the bytes have the form of a sealed value; only opening it shows if it is intact.
    package init(bytes: [UInt8]) throws(SealError) {
        guard
            bytes.count >= Layout.minimumByteCount,
            let version = Version(rawValue: bytes[0]),
            bytes[1] == UInt8(KeyID.length),
            let keyID = KeyID(ascii: bytes[Layout.keyID])
        else { throw .malformed }
        self.bytes = bytes
        self.keyID = keyID
        self.version = version
    }
}

extension SealedSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "sealed by \(keyID), \(bytes.count) bytes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
