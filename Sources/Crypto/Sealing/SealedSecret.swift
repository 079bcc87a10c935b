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

    static let version: UInt8 = 2

    package let bytes: [UInt8]
    /// The id of the sealing key according to the value; only opening it proves the id.
    package let keyID: KeyID

    /// Checks that the bytes have the form of a sealed value; only opening it shows if it is intact.
    package init(bytes: [UInt8]) throws(SealError) {
        guard
            bytes.count >= Layout.minimumByteCount,
            bytes[0] == Self.version, bytes[1] == UInt8(KeyID.length),
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

/// The row and column that a sealed value belongs to.
///
/// A value is refused in any other row or column. An attacker with write access to the database therefore
/// cannot move one user's token into another user's row.
package struct SealContext: Hashable, Sendable {
    /// The immutable id of the row.
    let owner: [UInt8]
    let column: String

    /// Makes the context of a row.
    ///
    /// All ids in one column of a table must have the same length.
    package init(owner: [UInt8], column: String) {
        self.owner = owner
        self.column = column
    }

    package init(owner: Int64, column: String) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8)
        for shift in stride(from: 56 as Int64, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: owner >> shift))
        }
        self.init(owner: bytes, column: column)
    }

    /// The HKDF purpose from which the key of this row and column is derived.
    ///
    /// Up to 54 bytes of it fit into one block of the hash.
    var derivationPurpose: [UInt8] {
        var bytes: [UInt8] = []
        // With one more byte for the counter of the derivation.
        bytes.reserveCapacity(2 + owner.count + column.utf8.count)
        bytes.append(UInt8(owner.count))
        bytes.append(contentsOf: owner)
        bytes.append(contentsOf: column.utf8)
        return bytes
    }
}

/// The reason why a secret could not be sealed or opened.
///
/// No case holds any part of the secret.
package enum SealError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The key ring lacks the key that sealed the value.
    case unknownKey(KeyID)
    /// The value was altered, belongs to another row or column, or was sealed by another key of the same id.
    case damaged(KeyID)
    /// The bytes do not have the form of a sealed value.
    case malformed
    /// An OpenSSL call failed that should succeed; the code comes from its error queue.
    case libraryFailure(call: String, code: UInt)

    package var description: String {
        switch self {
        case .unknownKey(let id): "the key ring has no key \(id)"
        case .damaged(let id): "the value sealed by key \(id) is damaged, or belongs to another row or another key"
        case .malformed: "the bytes are not a sealed value"
        case .libraryFailure(let call, let code): "OpenSSL's \(call) failed (error 0x\(String(code, radix: 16)))"
        }
    }
}
