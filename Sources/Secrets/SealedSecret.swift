/// A secret as the database keeps it.
///
/// | bytes | content |
/// |---|---|
/// | 1 | version, 1 |
/// | 1 | length of the key id, 8 |
/// | 8 | key id, in ASCII |
/// | 12 | nonce |
/// | any | ciphertext, as long as the secret |
/// | 16 | tag |
package struct SealedSecret: Hashable, Sendable {
    /// Where the parts lie in a value of so many bytes.
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

    static let version: UInt8 = 1

    package let bytes: [UInt8]
    /// The key that sealed it, as it says itself: only opening proves it.
    package let keyID: KeyID

    /// Takes bytes that have the shape of a sealed value; whether they are whole, only opening can tell.
    package init(bytes: [UInt8]) throws(SealError) {
        guard
            bytes.count >= Layout.minimumByteCount,
            bytes[0] == Self.version,
            bytes[1] == UInt8(KeyID.length),
            let keyID = KeyID(ascii: bytes[Layout.keyID])
        else { throw .malformed }
        self.bytes = bytes
        self.keyID = keyID
    }
}

extension SealedSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "sealed by \(keyID), \(bytes.count) bytes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
