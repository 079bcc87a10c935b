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
        // Big end first (docs/operate.md).
        self.init(owner: unsafe withUnsafeBytes(of: owner.bigEndian) { unsafe Array($0) }, column: column)
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
