package import Base

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
