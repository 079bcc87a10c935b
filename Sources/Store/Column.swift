package import Clocks
package import Secrets

/// The type of a column's values.
package enum ColumnType: Sendable {
    case integer
    case text
    case bytes
    case flag
}

/// A row that is written: takes the values of columns, one after another.
package protocol ColumnWriter {
    mutating func write(_ value: Int64?)
    mutating func write(_ value: String?)
    mutating func write(_ value: [UInt8]?)
    mutating func write(_ value: Bool?)
}

extension ColumnWriter {
    @inlinable
    package mutating func write(_ value: Timestamp?) { write(value?.milliseconds) }
}

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

/// The value of one column; one of the four, which is `nil` for NULL.
package struct ColumnValue: Hashable, ColumnWriter {
    package var integer: Int64?
    package var text: String?
    package var bytes: [UInt8]?
    package var flag: Bool?

    package init() {}

    @inlinable
    package init(of column: GrantColumn, in grant: Grant) {
        column.write(grant, to: &self)
    }

    @inlinable
    package mutating func write(_ value: Int64?) { integer = value }
    @inlinable
    package mutating func write(_ value: String?) { text = value }
    @inlinable
    package mutating func write(_ value: [UInt8]?) { bytes = value }
    @inlinable
    package mutating func write(_ value: Bool?) { flag = value }
}

extension Sequence where Element: RawRepresentable<String> {
    /// The codes as they are listed in SQL: quoted, in alphabetical order.
    package var sqlList: String { map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ") }
}
