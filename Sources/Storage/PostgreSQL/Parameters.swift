/// The values of one statement, in PostgreSQL's binary form: whole numbers in big-endian form, text as UTF-8
/// (``StoredText``).
///
/// Arrays carry a whole column of many rows: `unnest` turns them into rows again.
struct Parameters {
    /// The bytes of the values, after one unused byte: an empty value needs an address too, since a null pointer means
    /// NULL.
    private(set) var buffer: [UInt8] = [0]
    /// The place of each value in the buffer, with `nil` as the count of NULL.
    private(set) var ranges: [(start: Int, count: Int?)] = []
    private(set) var kinds: [UInt32] = []

    mutating func bind(_ value: SQLValue) {
        let start = buffer.count
        let isNull = !append(value)
        ranges.append((start, isNull ? nil : buffer.count - start))
        switch value {
        case .integer: kinds.append(SQLType.integer.number(isArray: false))
        case .text: kinds.append(SQLType.text.number(isArray: false))
        case .bytes: kinds.append(SQLType.bytes.number(isArray: false))
        case .flag: kinds.append(SQLType.flag.number(isArray: false))
        case .array(let type, _): kinds.append(type.number(isArray: true))
        }
    }

    /// Returns `false`, having written nothing, for NULL.
    private mutating func append(_ value: SQLValue) -> Bool {
        switch value {
        case .integer(let value?): buffer.append(bigEndian: value)
        case .text(let value?): StoredText.write(value, to: &buffer)
        case .bytes(let value?): buffer += value
        case .flag(let value?): buffer.append(value ? 1 : 0)
        case .array(let type, let values): appendArray(of: type, values)
        case .integer, .text, .bytes, .flag: return false
        }
        return true
    }

    /// Writes an array of one dimension.
    ///
    /// Its form is that of `array_recv`
    /// (https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/utils/adt/arrayfuncs.c).
    private mutating func appendArray(of type: SQLType, _ values: [SQLValue]) {
        buffer.append(bigEndian: values.isEmpty ? 0 : 1 as Int32)
        let nullMark = buffer.count
        buffer.append(bigEndian: 0 as Int32)
        buffer.append(bigEndian: type.number(isArray: false))
        guard !values.isEmpty else { return }
        buffer.append(bigEndian: Int32(values.count))
        buffer.append(bigEndian: 1 as Int32)
        for value in values {
            let mark = buffer.count
            buffer.append(bigEndian: -1 as Int32)
            if append(value) {
                overwrite(Int32(buffer.count - mark - 4), at: mark)
            } else {
                overwrite(1, at: nullMark)
            }
        }
    }

    private mutating func overwrite(_ value: Int32, at start: Int) {
        for index in 0..<4 { buffer[start + index] = UInt8(truncatingIfNeeded: value >> Int32(24 - 8 * index)) }
    }
}

extension SQLType {
    /// The number that the type, or an array of it, has in every server
    /// (https://github.com/postgres/postgres/blob/REL_15_STABLE/src/include/catalog/pg_type.dat).
    fileprivate func number(isArray: Bool) -> UInt32 {
        switch self {
        case .integer: isArray ? 1016 : 20
        case .text: isArray ? 1009 : 25
        case .bytes: isArray ? 1001 : 17
        case .flag: isArray ? 1000 : 16
        }
    }
}

/// Statements that are sent together and take one round trip.
struct StatementBatch {
    /// A type of its own: Swift copies a tuple of such values by calls of the runtime.
    struct Entry {
        let query: SQLQuery
        let parameters: Parameters
    }

    private(set) var entries: [Entry] = []

    /// Adds a statement and returns the position of its result.
    @discardableResult
    mutating func add(_ statement: SQLStatement) -> Int {
        var parameters = Parameters()
        for value in statement.values { parameters.bind(value) }
        entries.append(Entry(query: statement.query, parameters: parameters))
        return entries.count - 1
    }

    @discardableResult
    mutating func add(_ query: SQLQuery, _ values: SQLValue...) -> Int { add(SQLStatement(query, values)) }

    init() {}

    /// Creates a batch of one statement.
    init(_ query: SQLQuery, _ values: SQLValue...) { add(SQLStatement(query, values)) }
}

/// Text in a form that PostgreSQL can store: it accepts every character but NUL
/// (https://www.postgresql.org/docs/15/datatype-character.html), which a name or an id from outside can contain.
///
/// SUBSTITUTE (1A hexadecimal) and a zero stand for NUL, SUBSTITUTE and a Z for SUBSTITUTE itself. All other characters
/// stay.
enum StoredText {
    private static let mark: UInt8 = 0x1a
    private static let null = UInt8(ascii: "0")
    private static let itself = UInt8(ascii: "Z")

    static func write(_ text: String, to buffer: inout [UInt8]) {
        guard text.utf8.contains(where: { $0 == 0 || $0 == mark }) else {
            buffer.append(contentsOf: text.utf8)
            return
        }
        for byte in text.utf8 {
            switch byte {
            case 0: buffer += [mark, null]
            case mark: buffer += [mark, itself]
            default: buffer.append(byte)
            }
        }
    }

    static func read(_ stored: some Collection<UInt8>) -> String {
        guard stored.contains(mark) else { return String(decoding: stored, as: UTF8.self) }
        var bytes: [UInt8] = []
        var isMarked = false
        for byte in stored {
            if isMarked {
                bytes.append(byte == null ? 0 : mark)
                isMarked = false
            } else if byte == mark {
                isMarked = true
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
