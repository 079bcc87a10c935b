/// The place that a sealed value belongs to: opened anywhere else, it is refused.
///
/// So that nobody who can write to the database moves one user's token into another user's row.
package struct SealContext: Hashable, Sendable {
    /// The immutable id of the row.
    package let owner: Int64
    package let column: String

    package init(owner: Int64, column: String) {
        self.owner = owner
        self.column = column
    }

    /// What the tag covers beside the secret; the fixed lengths before the column make it unambiguous.
    var authenticatedBytes: [UInt8] {
        let domain = "refresh-worker sealed 1".utf8
        var bytes: [UInt8] = []
        bytes.reserveCapacity(domain.count + 8 + column.utf8.count)
        bytes.append(contentsOf: domain)
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: owner >> Int64(shift)))
        }
        bytes.append(contentsOf: column.utf8)
        return bytes
    }
}
