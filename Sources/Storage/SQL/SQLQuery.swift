import Base
import Crypto

/// One SQL statement with a name, which errors show.
///
/// A statement of both databases is written once, as PostgreSQL takes it:
///
///     SELECT at FROM refresh_worker.security_events WHERE jti = $1
///
/// A comment for PostgreSQL is a hint for SQLite: `/* INDEXED BY grants_by_state */`.
struct SQLQuery: Sendable {
    let name: String
    let text: String
    /// A hash of the text, under which a connection to SQLite keeps it prepared.
    let hash: UInt64
    /// The name under which a PostgreSQL server keeps it prepared.
    ///
    /// It contains a hash of the text: behind a pooler another version of this program may have left a statement with
    /// the same purpose and another text in the same session.
    let preparedName: String

    init(_ name: String, _ text: String) {
        self.name = name
        self.text = text
        // FNV-1a, 64 bits (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv): the same in every process.
        hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
        preparedName = "refresh_worker_\(String(hash, radix: 16))"
    }

    /// The text for SQLite, which has one schema, compares text by bytes anyway, and numbers parameters with `?1`.
    var textForSQLite: String {
        ["refresh_worker.", " COLLATE \"C\"", "/*", "*/"].reduce(text) { $0.replacing($1, with: "") }
            .replacing("$", with: "?")
    }
}

/// A statement with the values of its parameters.
struct SQLStatement: Sendable {
    let query: SQLQuery
    let values: [SQLValue]

    init(_ query: SQLQuery, _ values: [SQLValue]) {
        self.query = query
        self.values = values
    }

    init(_ query: SQLQuery, _ values: SQLValue...) { self.init(query, values) }
}

/// A value of a column or a parameter; `nil` is NULL.
enum SQLValue: Hashable, Sendable {
    case integer(Int64?)
    case text(String?)
    case bytes([UInt8]?)
    case flag(Bool?)
    /// Many values of one type, which only PostgreSQL takes.
    case array(SQLType, [SQLValue])

    static func time(_ value: Timestamp?) -> SQLValue { .integer(value?.milliseconds) }

    /// A limit on the number of rows.
    static func limit(_ value: Int) -> SQLValue { .integer(Int64(max(0, value))) }
}

/// A row that is read from left to right.
protocol SQLRow: SendableMetatype {
    mutating func optionalInteger() -> Int64?
    mutating func optionalText() -> String?
    /// Reads a text that is often the same as in the row before.
    mutating func text(like former: String) -> String?
    mutating func optionalBlob() -> [UInt8]?
    mutating func optionalFlag() -> Bool?
}

extension SQLRow {
    mutating func text(like _: String) -> String? { optionalText() }

    // The schema declares the columns that these read NOT NULL.
    mutating func integer() -> Int64 { optionalInteger() ?? 0 }
    mutating func count() -> Int { Int(integer()) }
    mutating func text() -> String { optionalText() ?? "" }
    mutating func blob() -> [UInt8] { optionalBlob() ?? [] }
    mutating func flag() -> Bool { optionalFlag() ?? false }
    mutating func time() -> Timestamp { Timestamp(milliseconds: integer()) }

    mutating func timestamp() -> Timestamp? { optionalInteger().map { Timestamp(milliseconds: $0) } }

    /// Reads a sealed secret; `what` names it in the error for a damaged one.
    mutating func sealed(_ what: @autoclosure () -> String) throws(StoreError) -> SealedSecret? {
        guard let bytes = optionalBlob() else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw StoreError(damagedRow: what())
        }
    }
}
