/// The values of one statement, in PostgreSQL's binary form: whole numbers in big-endian form, text as UTF-8
/// (``StoredText``).
///
/// Arrays carry a whole column of many rows: `unnest` turns them into rows again.
struct Parameters {
    /// The types of a parameter, with the numbers that they have in every server
    /// (https://github.com/postgres/postgres/blob/REL_15_STABLE/src/include/catalog/pg_type.dat).
    enum Kind: UInt32 {
        case flag = 16
        case bytes = 17
        case integer = 20
        case text = 25
        case flags = 1000
        case byteArrays = 1001
        case texts = 1009
        case integers = 1016

        fileprivate init(_ type: SQLType) {
            self =
                switch type {
                case .integer, .sequence: .integer
                case .text: .text
                case .bytes: .bytes
                case .flag: .flag
                }
        }

        fileprivate var array: Kind {
            switch self {
            case .flag, .flags: .flags
            case .bytes, .byteArrays: .byteArrays
            case .integer, .integers: .integers
            case .text, .texts: .texts
            }
        }
    }

    struct ValueRange {
        let start: Int
        /// The number of bytes; `nil` for NULL.
        let count: Int?
    }

    /// The bytes of the values, after one unused byte: an empty value needs an address too, since a null pointer means
    /// NULL.
    private(set) var buffer: [UInt8] = [0]
    private(set) var ranges: [ValueRange] = []
    private(set) var kinds: [UInt32] = []

    mutating func bind(_ value: SQLValue) {
        switch value {
        case .integer(let value): add(.integer, isNull: value == nil) { $0.write(value ?? 0) }
        case .text(let value): add(.text, isNull: value == nil) { $0.write(value ?? "") }
        case .bytes(let value): add(.bytes, isNull: value == nil) { $0.buffer += value ?? [] }
        case .flag(let value): add(.flag, isNull: value == nil) { $0.buffer.append(value == true ? 1 : 0) }
        case .array(let type, let values): addArray(of: Kind(type), values)
        }
    }

    private mutating func add(_ kind: Kind, isNull: Bool, _ write: (inout Parameters) -> Void) {
        kinds.append(kind.rawValue)
        guard !isNull else { return ranges.append(ValueRange(start: buffer.count, count: nil)) }
        let start = buffer.count
        write(&self)
        ranges.append(ValueRange(start: start, count: buffer.count - start))
    }

    /// Writes an array of one dimension.
    ///
    /// Its form is that of `array_recv`
    /// (https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/utils/adt/arrayfuncs.c).
    private mutating func addArray(of kind: Kind, _ values: [SQLValue]) {
        add(kind.array, isNull: false) { parameters in
            parameters.write(values.isEmpty ? 0 : 1 as Int32)
            let nullMark = parameters.buffer.count
            parameters.write(0 as Int32)
            parameters.write(Int32(kind.rawValue))
            guard !values.isEmpty else { return }
            parameters.write(Int32(values.count))
            parameters.write(1 as Int32)
            for value in values {
                let mark = parameters.buffer.count
                parameters.write(-1 as Int32)
                if parameters.write(value) {
                    parameters.overwrite(Int32(parameters.buffer.count - mark - 4), at: mark)
                } else {
                    parameters.overwrite(1, at: nullMark)
                }
            }
        }
    }

    /// Returns `false`, having written nothing, for NULL.
    private mutating func write(_ value: SQLValue) -> Bool {
        switch value {
        case .integer(let value?): write(value)
        case .text(let value?): write(value)
        case .bytes(let value?): buffer += value
        case .flag(let value?): buffer.append(value ? 1 : 0)
        case .integer, .text, .bytes, .flag, .array: return false
        }
        return true
    }

    private mutating func write(_ value: Int64) {
        let bits = UInt64(bitPattern: value)
        for shift in stride(from: 56 as UInt64, through: 0, by: -8) {
            buffer.append(UInt8(truncatingIfNeeded: bits >> shift))
        }
    }

    private mutating func write(_ value: Int32) {
        let bits = UInt32(bitPattern: value)
        for shift in stride(from: 24 as UInt32, through: 0, by: -8) {
            buffer.append(UInt8(truncatingIfNeeded: bits >> shift))
        }
    }

    private mutating func write(_ value: String) {
        StoredText.write(value, to: &buffer)
    }

    private mutating func overwrite(_ value: Int32, at start: Int) {
        let bits = UInt32(bitPattern: value)
        for index in 0..<4 {
            buffer[start + index] = UInt8(truncatingIfNeeded: bits >> UInt32(24 - 8 * index))
        }
    }
}

/// Statements that are sent together and take one round trip.
struct StatementBatch {
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
}

extension StatementBatch {
    /// Creates a batch of one statement without values.
    init(_ query: SQLQuery) {
        self.init()
        add(query)
    }
}

/// Text in a form that PostgreSQL can store: it accepts every character but NUL
/// (https://www.postgresql.org/docs/15/datatype-character.html), which a name or an id from outside may contain.
///
/// SUBSTITUTE (1A hexadecimal) and a zero stand for NUL, SUBSTITUTE and a Z for SUBSTITUTE itself; all other characters
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
