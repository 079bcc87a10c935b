import Base
private import Crypto

/// One row of a store, without the parts that only make sense in that store.
package struct ArchiveRecord: Hashable, Sendable {
    /// The kinds of records, in an order in which each refers only to earlier ones.
    package enum Kind: String, CaseIterable, Sendable {
        case user
        case grant
        case event
        case session
        /// Bytes that only the engine reads. It drops the parts that depend on the clock of the former store.
        case clientHealth = "client_health"
        case identifier
        case notice
    }

    let kind: Kind
    /// The values of the columns of ``Kind/table``.
    let values: [SQLValue]
    /// Orders the records of a kind: numbers by size, texts and bytes by their bytes.
    var key: [SQLValue] {
        let columns = kind.table.columns
        return kind.table.key.compactMap { name in columns.firstIndex { $0.name == name }.map { values[$0] } }
    }

    /// The positions in a record of a grant of the columns that it is read from.
    private static let readPositions: [Int] = {
        let read = Set(Grant.readColumns.columns.map(\.name))
        return Grant.table.columns.indices.filter { read.contains(Grant.table.columns[$0].name) }
    }()

    /// The positions in a record of an event of the columns that it is read from.
    private static let eventPositions = GrantEvent.table.columns.indices.filter {
        GrantEvent.table.columns[$0].name != "number"
    }

    /// Throws for a damaged row, so that no copy that holds one counts as complete.
    fileprivate func check() throws(StoreError) {
        var row = ValueRow(values: values[...])
        switch kind {
        case .user: _ = try User.read(&row)
        case .grant:
            row.values = Self.readPositions.map { values[$0] }[...]
            _ = try Grant.read(&row)
        case .event:
            row.values = Self.eventPositions.map { values[$0] }[...]
            _ = try GrantEvent.read(&row)
        case .session: _ = try Session.read(&row)
        case .notice: _ = try Notice.read(&row)
        case .clientHealth, .identifier: break
        }
    }
}

/// Values that were read, as a row.
///
/// The lease of a grant is not among them, and is read as NULL.
private struct ValueRow: SQLRow {
    var values: ArraySlice<SQLValue>

    mutating func optionalInteger() -> Int64? {
        if case .integer(let value) = values.popFirst() { value } else { nil }
    }
    mutating func optionalText() -> String? { if case .text(let value) = values.popFirst() { value } else { nil } }
    mutating func optionalBlob() -> [UInt8]? { if case .bytes(let value) = values.popFirst() { value } else { nil } }
    mutating func optionalFlag() -> Bool? { if case .flag(let value) = values.popFirst() { value } else { nil } }
}

extension ArchiveRecord.Kind {
    /// The table of the records, as SQLite has it: PostgreSQL has a part of a grant's row in another.
    var table: Table<[SQLValue]> {
        switch self {
        case .user: User.table.rows
        case .grant: Grant.table.rows
        case .event: GrantEvent.table.rows
        case .session: Session.table.rows
        case .clientHealth: SQLQuery.clients.rows
        case .identifier: SQLQuery.identifiers.rows
        case .notice: Notice.table.rows
        }
    }
}

/// A checksum over records that does not depend on their store, or on the page size with which they were read.
package struct ArchiveDigest: Hashable, Sendable, CustomStringConvertible {
    package private(set) var count = 0
    private var hash = [UInt8](repeating: 0, count: 32)

    init(of records: [ArchiveRecord] = []) {
        for record in records { add(record) }
    }

    /// Adds a record: the new checksum is the SHA-256 of the former one and the record.
    ///
    /// Two different rows never give the same bytes: each value is a zero for NULL, or a one, its length and its bytes.
    mutating func add(_ record: ArchiveRecord) {
        var bytes = hash
        for value in [.text(record.kind.rawValue)] + record.values {
            let content: [UInt8]? =
                switch value {
                case .integer(let value): value.map { [UInt8](bigEndian: $0) }
                case .flag(let value): value.map { [$0 ? 1 : 0] }
                case .text(let value): value.map { Array($0.utf8) }
                case .bytes(let value): value
                case .array: nil
                }
            bytes.append(content == nil ? 0 : 1)
            guard let content else { continue }
            bytes.append(bigEndian: Int64(content.count))
            bytes += content
        }
        hash = Digest.sha256(bytes)
        count += 1
    }

    /// Sixty-four lower-case hexadecimal digits.
    package var description: String { Hexadecimal.encode(hash) }
}

extension SQLQuery {
    /// Notes a copy on its way into a database without records.
    fileprivate static let noteReceiving = SQLQuery(
        "note a copy on its way",
        sql: """
            INSERT INTO refresh_worker.meta (key, value) SELECT $1, 'begun' WHERE \(hasNoRecords)
            ON CONFLICT DO NOTHING
            """
    )

    private static var hasNoRecords: String {
        let conditions = ArchiveRecord.Kind.allCases.map {
            "NOT EXISTS (SELECT 1 FROM refresh_worker.\($0.table.name))"
        }
        return conditions.joined(separator: " AND ")
    }
}

extension SQLStore {
    /// The key in `meta` of the note that this store receives a copy.
    private static var receivingKey: String { "receiving_copy" }
    /// The key in `meta` of the note that the database was moved.
    static var movedKey: String { "moved_to" }

    package func count(of kind: ArchiveRecord.Kind) async throws -> Int {
        let query = SQLQuery("count \(kind.rawValue)", sql: "SELECT count(*) FROM refresh_worker.\(kind.table.name)")
        return try await first(SQLStatement(query), by: .wholeTable) { $0.count() } ?? 0
    }

    package func records(
        of kind: ArchiveRecord.Kind,
        after last: ArchiveRecord?,
        atMost count: Int
    ) async throws -> [ArchiveRecord] {
        let order = "ORDER BY \(kind.table.keyNames) LIMIT $1"
        guard let last else {
            return try await rows(of: kind, "first page of \(kind.rawValue)", order, [.limit(count)])
        }
        let placeholders = last.key.indices.map { "$\($0 + 2)" }.joined(separator: ", ")
        let isLater = "(\(kind.table.keyNames)) > (\(placeholders))"
        return try await rows(
            of: kind,
            "next page of \(kind.rawValue)",
            "WHERE \(isLater) \(order)",
            [.limit(count)] + last.key
        )
    }

    package func lastRecord(of kind: ArchiveRecord.Kind) async throws -> ArchiveRecord? {
        let rest = "ORDER BY \(kind.table.key.map { "\($0) DESC" }.joined(separator: ", ")) LIMIT 1"
        return try await rows(of: kind, "last \(kind.rawValue)", rest).first
    }

    private func rows(of kind: ArchiveRecord.Kind, _ name: String, _ rest: String, _ values: [SQLValue] = [])
        async throws -> [ArchiveRecord]
    {
        let table = kind.table
        let query = kind == .grant ? SQLQuery(name, sql: "\(Self.allOfGrants) \(rest)") : table.select(name, rest)
        return try await rows(SQLStatement(query, values), by: .scan) { row throws(StoreError) in
            let record = ArchiveRecord(kind: kind, values: table.columns.map { row.value(of: $0.type) })
            try record.check()
            return record
        }
    }

    package var isReceiving: Bool { get async throws { try await note(Self.receivingKey) != nil } }

    package func beginReceiving() async throws {
        let note = try await change(
            [
                SQLStatement(.noteReceiving, .text(Self.receivingKey)),
                SQLStatement(.readMeta, .text(Self.receivingKey)),
            ],
            [.exclusive, .evenIfMoved, .repeatable]
        ) { $0.text() }.last
        guard note.count == 1 else {
            throw StoreError(.conflict, "\(databaseName) is not empty, and a copy goes only into an empty one.")
        }
    }

    package func receive(_ records: [ArchiveRecord]) async throws {
        let statements = ArchiveRecord.Kind.allCases.flatMap { kind in
            Self.restore(records.filter { $0.kind == kind }.map(\.values), of: kind)
        }
        try await change(statements + Self.restoreAccounts(of: records), [.exclusive, .evenIfMoved])
    }

    /// Accounts follow from the users, so a copy has no records of them.
    private static func restoreAccounts(of records: [ArchiveRecord]) -> [SQLStatement] {
        let users = records.filter { $0.kind == .user }
        guard let first = users.first, let last = users.last else { return [] }
        return [SQLStatement(.restoreAccounts, first.key + last.key)]
    }

    package func endReceiving() async throws {
        try await change(
            [Self.receivingKey, Self.movedKey].map { SQLStatement(.deleteMeta, .text($0)) },
            [.exclusive, .evenIfMoved, .repeatable]
        )
    }

    package var movedTo: String? { get async throws { try await note(Self.movedKey) } }

    package func remainingLease() async throws -> Duration? {
        let time = try await leaseTime()
        let last = try await first(SQLStatement(Self.lastLease, .text(time.epoch)), by: .wholeTable) {
            $0.optionalInteger()
        }
        guard let last = last ?? nil, last > time.instant.milliseconds else { return nil }
        return .milliseconds(last - time.instant.milliseconds)
    }

    /// A copy lacks what a newer version has added, so this version does not mark a newer database.
    package func markMoved(to location: String?) async throws {
        let version = try await first(SQLStatement(Self.schemaVersion)) { Int($0.integer()) } ?? 0
        let supported = SchemaStep.all.count
        guard location == nil || version <= supported else {
            throw StoreError(newerSchema: version, of: databaseName, supported: supported)
        }
        let mark =
            if let location {
                SQLStatement(.writeMeta, .text(Self.movedKey), .text(location))
            } else {
                SQLStatement(.deleteMeta, .text(Self.movedKey))
            }
        try await change(beforeMove + [mark], [.long, .evenIfMoved, .repeatable])
    }
}
