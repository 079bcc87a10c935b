package import Base
package import Crypto

/// A row that is read from left to right.
package protocol ColumnReader {
    /// The error for a value that this program cannot have stored.
    associatedtype Damage: Error

    mutating func optionalInteger() -> Int64?
    mutating func optionalText() -> String?
    mutating func optionalBlob() -> [UInt8]?
    mutating func optionalFlag() -> Bool?

    func damage(_ what: String) -> Damage
}

extension ColumnReader {
    /// Reads the next column, which the schema declares NOT NULL.
    @inlinable
    package mutating func integer() -> Int64 { optionalInteger() ?? 0 }

    /// Reads the next column, which the schema declares NOT NULL.
    @inlinable
    package mutating func text() -> String { optionalText() ?? "" }

    @inlinable
    package mutating func timestamp() -> Timestamp? { optionalInteger().map { Timestamp(milliseconds: $0) } }

    @inlinable
    package mutating func sealed(of id: GrantID) throws(Damage) -> SealedSecret? {
        guard let bytes = optionalBlob() else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw damage("A stored token of grant \(id)")
        }
    }

    @inlinable
    package mutating func lease() -> Lease? {
        let owner = optionalText()
        let claim = optionalInteger()
        let epoch = optionalText()
        let until = optionalInteger()
        guard let owner, let claim, let epoch, let until else { return nil }
        return Lease(owner: owner, claim: claim, epoch: epoch, until: BootInstant(milliseconds: until))
    }
}
