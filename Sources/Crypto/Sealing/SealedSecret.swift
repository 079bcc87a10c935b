/// A secret as stored in the database.
///
/// | bytes | content |
/// |---|---|
/// | 1 | version, 2 |
/// | 1 | length of the key id, 8 |
/// | 8 | key id, in ASCII |
/// | 12 | nonce |
/// | any | ciphertext, as long as the secret |
/// | 16 | tag |
///
/// It is AES-256-GCM with a key that is derived from the ring's key for the row and column of the value.
package struct SealedSecret: Hashable, Sendable {
    static let version: UInt8 = 2
    /// The bytes before the nonce.
    static let headerLength = 2 + KeyID.length
    static let minimumByteCount = headerLength + CipherContext.overhead

    package let bytes: [UInt8]
    /// The id of the sealing key according to the value. Only opening it proves the id.
    package let keyID: KeyID

    /// Checks that the bytes have the form of a sealed value.
    ///
    /// Only opening it shows if it is intact.
    package init(bytes: [UInt8]) throws(CryptoError) {
        guard
            bytes.count >= Self.minimumByteCount,
            bytes[0] == Self.version, bytes[1] == UInt8(KeyID.length),
            let keyID = KeyID(ascii: bytes[2..<Self.headerLength])
        else { throw .notSealed }
        self.init(bytes: bytes, sealedBy: keyID)
    }

    /// Takes bytes that are known to have the form.
    init(bytes: [UInt8], sealedBy keyID: KeyID) {
        self.bytes = bytes
        self.keyID = keyID
    }
}

extension SealedSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "sealed by \(keyID), \(bytes.count) bytes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
