/// The claims whose answers brought the last stored rotated refresh tokens of a grant, the latest last.
///
/// A commit whose confirmation was lost is repeated, and a spill file is read again. The rotated token may have been
/// replaced since: by the next refresh, by the app, or by the same token sealed with another key. Its claim still shows
/// that it was stored, so that only a token that was never stored counts as lost.
package struct RotationClaims: Hashable, Sendable {
    /// Enough for a third of a day of hourly refreshes.
    package static let capacity = 8

    private(set) var claims: [Int64] = []

    package init() {}

    /// Parses the form that ``bytes`` returns; `nil` stands for an empty list.
    package init(bytes: [UInt8]?) {
        let bytes = bytes ?? []
        for start in stride(from: 0, through: bytes.count - 8, by: 8) {
            insert(Int64(bitPattern: bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }))
        }
    }

    /// The stored form: eight bytes for each claim, the highest byte first; `nil` if there are none.
    package var bytes: [UInt8]? {
        guard !claims.isEmpty else { return nil }
        return claims.flatMap { claim in
            stride(from: 56 as UInt64, through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: UInt64(bitPattern: claim) >> $0)
            }
        }
    }

    package func contains(_ claim: Int64) -> Bool { claims.contains(claim) }

    package mutating func insert(_ claim: Int64) {
        guard !contains(claim) else { return }
        claims = claims.suffix(Self.capacity - 1) + [claim]
    }
}
