import Base
import Crypto

/// A store in an SQL database: all that is the same in SQLite and in PostgreSQL, over what each driver runs.
///
/// The files next to this one have one table each: its columns, its statements, and what the store does with them.
/// Leases, the commit of results, scans of due grants and the opening are with each driver.
protocol SQLStore: Store {
    associatedtype Row: SQLRow

    /// The statements that read grants.
    static var grantQueries: GrantQueries { get }
    static var scanQueries: ScanQueries { get }
    /// The statements, each with the parameters `$1` (now) and `$2` (a limit), that remove users whose tombstones have
    /// ended with all that is theirs. The last one counts the users.
    static var removeTombstones: [SQLQuery] { get }
    /// The query for the end of the last lease of the epoch `$1`.
    static var lastLease: SQLQuery { get }
    /// The statements before the note that the database was moved, which wait for writers that have not seen it.
    var beforeMove: [SQLStatement] { get }
    static var schemaVersion: SQLQuery { get }
    /// The name of the database in errors, at the beginning of a sentence.
    var databaseName: String { get }

    /// Runs queries that change nothing, and reads the rows of all of them, with the position of their query.
    func rows<Element: Sendable>(
        _ statements: [SQLStatement],
        by reader: SQLReader,
        _ read: @escaping @Sendable (_ position: Int, _ row: inout Row) throws(StoreError) -> Element
    ) async throws(StoreError) -> [Element]

    /// Runs statements in one transaction. It returns the number of rows that each has changed, and the rows that the
    /// last one returned.
    func change<Element: Sendable>(
        _ statements: [SQLStatement],
        _ options: SQLChangeOptions,
        _ read: @escaping @Sendable (inout Row) throws(StoreError) -> Element
    ) async throws(StoreError) -> (changed: [Int], last: [Element])

    /// The beginning of a query for the columns of ``Grant/table``.
    static var allOfGrants: String { get }
    /// Returns the statements that add rows of a copy.
    static func restore(_ rows: [[SQLValue]], of kind: ArchiveRecord.Kind) -> [SQLStatement]
}

/// The connection for a query.
enum SQLReader: Sendable {
    /// For a few rows, for which a caller waits.
    case single
    /// For a page of rows: it does not delay the reads of single ones.
    case scan
    /// For a query that can take seconds: it does not delay scans.
    case survey
    /// For a query that reads a whole table, and can take minutes.
    case wholeTable
}

/// The demands of a change.
///
/// SQLite excludes every other writer anyway, and never repeats.
struct SQLChangeOptions: OptionSet, Sendable {
    let rawValue: Int

    /// It excludes all transactions of other writers.
    static let exclusive = SQLChangeOptions(rawValue: 1)
    /// It takes longer than a claim can wait.
    static let long = SQLChangeOptions(rawValue: 2)
    /// It takes place in a database that was moved elsewhere as well.
    static let evenIfMoved = SQLChangeOptions(rawValue: 4)
    /// A repetition does no harm, so it is repeated if it is not known whether it took place.
    static let repeatable = SQLChangeOptions(rawValue: 8)
    /// If it changes a row, deleted data must leave SQLite's log too.
    static let wipes = SQLChangeOptions(rawValue: 16)
}

extension SQLStore {
    func rows<Element: Sendable>(
        _ statement: SQLStatement,
        by reader: SQLReader,
        _ read: @escaping @Sendable (inout Row) throws(StoreError) -> Element
    ) async throws(StoreError) -> [Element] {
        try await rows([statement], by: reader) { _, row throws(StoreError) in try read(&row) }
    }

    func first<Element: Sendable>(
        _ statement: SQLStatement,
        by reader: SQLReader = .single,
        _ read: @escaping @Sendable (inout Row) throws(StoreError) -> Element
    ) async throws(StoreError) -> Element? {
        try await rows(statement, by: reader, read).first
    }

    @discardableResult
    func change(_ statements: [SQLStatement], _ options: SQLChangeOptions = []) async throws(StoreError) -> [Int] {
        try await change(statements, options) { _ in }.changed
    }
}

/// The transaction that an SQL store passes to the body of ``Store/transact(_:)``.
protocol SQLTransaction: AnyObject, StoreTransaction {
    associatedtype Row: SQLRow

    /// The statements that read grants and keep them as they are until the transaction ends.
    static var grantQueries: GrantQueries { get }

    /// Runs a query, which sees what this transaction has written.
    func rows<Element>(
        _ statement: SQLStatement,
        _ read: (inout Row) throws(StoreError) -> Element
    ) throws(StoreError) -> [Element]
    /// Runs a query of ``grantQueries``, which returns the grants as this transaction has left them.
    func grants(_ statement: SQLStatement) throws(StoreError) -> [Grant]
    /// Runs a search of ``grantQueries`` with the values of its parameters.
    func grants(found search: GrantSearch, by values: [SQLValue]) throws(StoreError) -> [Grant]
    /// Runs statements in order, and returns the number of rows that each has changed.
    func change(_ statements: [SQLStatement]) throws(StoreError) -> [Int]

    /// Makes later reads see a change that was not made grant by grant.
    func forgetGrants()
    /// Makes deleted data leave SQLite's log after the commit.
    func wipe()
}

extension SQLTransaction {
    func first<Element>(
        _ statement: SQLStatement,
        _ read: (inout Row) throws(StoreError) -> Element
    ) throws(StoreError) -> Element? {
        try rows(statement, read).first
    }

    /// Runs a statement that must change one row.
    func changeOne(_ statement: SQLStatement, else message: @autoclosure () -> String) throws(StoreError) {
        guard try change([statement]) == [1] else { throw StoreError(.conflict, message()) }
    }
}

/// One SQL statement with a name, which errors show.
///
/// A statement of both databases is written once, as PostgreSQL takes it:
///
///     SELECT at FROM refresh_worker.identifiers WHERE identifier = $1
///
/// A connection to another schema replaces the name of the schema.
/// A comment for PostgreSQL is a hint for SQLite: `/* INDEXED BY grants_by_state */`.
struct SQLQuery: Sendable {
    let name: String
    let text: String
    /// A hash of the text, under which a connection to SQLite keeps it prepared.
    let hash: UInt64
    /// The name under which a PostgreSQL server keeps it prepared.
    ///
    /// It contains a hash of the text: behind a pooler another version of this program, or a worker of another schema,
    /// might have left a statement with the same purpose and another text in the same session.
    let preparedName: String

    init(_ name: String, sql text: String) {
        self.name = name
        self.text = text
        hash = StableHash.of(text)
        preparedName = "refresh_worker_\(String(hash, radix: 16))"
    }

    /// The text for SQLite, which has one schema, compares text by bytes anyway, and numbers parameters with `?1`.
    var textForSQLite: String {
        var (rest, result) = (Array(text.utf8)[...], [UInt8]())
        result.reserveCapacity(rest.count)
        while let byte = rest.first {
            let omitted = Self.omittedInSQLite.first { $0[0] == byte && rest.starts(with: $0) }
            if omitted == nil { result.append(byte == UInt8(ascii: "$") ? UInt8(ascii: "?") : byte) }
            rest = rest.dropFirst(omitted?.count ?? 1)
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static let omittedInSQLite = ["refresh_worker.", " COLLATE \"C\"", "/*", "*/"].map { Array($0.utf8) }
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

/// A value of a column or a parameter, where `nil` is NULL.
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
    /// Limits the number, because a damaged one must not overflow when it is increased.
    mutating func count() -> Int { Int(integer().clamped(to: 0...1 << 53)) }
    mutating func text() -> String { optionalText() ?? "" }
    mutating func blob() -> [UInt8] { optionalBlob() ?? [] }
    mutating func flag() -> Bool { optionalFlag() ?? false }
    mutating func time() -> Timestamp { Timestamp(milliseconds: integer()) }

    mutating func timestamp() -> Timestamp? { optionalInteger().map { Timestamp(milliseconds: $0) } }

    mutating func value(of type: SQLType) -> SQLValue {
        switch type {
        case .integer: .integer(optionalInteger())
        case .text: .text(optionalText())
        case .bytes: .bytes(optionalBlob())
        case .flag: .flag(optionalFlag())
        }
    }

    /// Reads a sealed secret. `what` names it in the error for a damaged one.
    mutating func sealed(_ what: @autoclosure () -> String) throws(StoreError) -> SealedSecret? {
        guard let bytes = optionalBlob() else { return nil }
        do {
            return try SealedSecret(bytes: bytes)
        } catch {
            throw StoreError(damagedRow: what())
        }
    }
}
