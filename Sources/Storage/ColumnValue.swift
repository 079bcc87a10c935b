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
