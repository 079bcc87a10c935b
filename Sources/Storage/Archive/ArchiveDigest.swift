private import Crypto

/// A checksum over records that does not depend on their store, or on the page size with which they were read.
package struct ArchiveDigest: Hashable, Sendable, CustomStringConvertible {
    package private(set) var count = 0
    private var hash = [UInt8](repeating: 0, count: 32)

    init() {}

    /// Adds a record: the new checksum is the SHA-256 of the former one and the record.
    mutating func add(_ record: ArchiveRecord) {
        var bytes = CanonicalBytes(hash)
        bytes.add(record)
        hash = Digest.sha256(bytes.bytes)
        count += 1
    }

    /// Sixty-four lower-case hexadecimal digits.
    package var description: String { Hexadecimal.encode(hash) }
}

/// An unambiguous encoding: two different rows of fields never give the same bytes.
private struct CanonicalBytes {
    private(set) var bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func add(_ record: ArchiveRecord) {
        write(record.kind.rawValue)
        for value in record.values {
            switch value {
            case .integer(let value): write(value)
            case .text(let value): write(value)
            case .bytes(let value): write(value)
            case .flag(let value): write(value.map { $0 ? 1 : 0 as Int64 })
            case .array: break
            }
        }
    }

    private mutating func write(_ value: [UInt8]?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        add(length: value.count)
        bytes += value
    }

    private mutating func write(_ value: String?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        add(length: value.utf8.count)
        bytes += value.utf8
    }

    private mutating func write(_ value: Int64?) {
        guard let value else { return bytes.append(0) }
        bytes.append(1)
        for shift in stride(from: Int64(56), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    private mutating func add(length: Int) { write(Int64(length)) }
}
