import Base

extension SQLiteStore: StoreArchive {
    /// The key in `meta` of the note that this store receives a copy.
    private static let receivingKey = "receiving_copy"
    /// The key in `meta` of the note that the database was moved.
    static let movedKey = "moved_to"

    package func count(of kind: ArchiveRecord.Kind) async throws -> Int {
        try await scanner.run { connection throws(StoreError) in
            Int(try connection.integer(SQLiteArchiveRow.count(kind)))
        }
    }

    package func records(
        of kind: ArchiveRecord.Kind,
        after key: ArchiveRecord.Key?,
        atMost count: Int
    ) async throws -> [ArchiveRecord] {
        try await scanner.run { connection throws(StoreError) in
            try connection.rows(
                key == nil ? SQLiteArchiveRow.firstPage(of: kind) : SQLiteArchiveRow.nextPage(of: kind),
                bind: { statement in
                    statement.bind(Int64(max(0, count)))
                    if let key { statement.bind(key) }
                },
                read: { (row: inout SQLiteRow) throws(StoreError) in try SQLiteArchiveRow.read(kind, from: &row) }
            )
        }
    }

    package func lastKey(of kind: ArchiveRecord.Kind) async throws -> ArchiveRecord.Key? {
        try await scanner.run { connection throws(StoreError) in
            try connection.first(SQLiteArchiveRow.last(of: kind)) { (row: inout SQLiteRow) throws(StoreError) in
                SQLiteArchiveRow.key(of: kind, from: &row)
            }
        }
    }

    package var isReceiving: Bool {
        get async throws {
            try await reader.run { connection throws(StoreError) in try connection.note(Self.receivingKey) != nil }
        }
    }

    package func beginReceiving() async throws {
        try await writer.run { [path] connection throws(StoreError) in
            try connection.write(evenIfMoved: true) { () throws(StoreError) in
                guard try connection.note(Self.receivingKey) == nil else { return }
                for kind in ArchiveRecord.Kind.allCases where try connection.integer(SQLiteArchiveRow.count(kind)) > 0 {
                    throw StoreError(
                        .conflict,
                        "The database \(path) is not empty, and a copy goes only into an empty one."
                    )
                }
                try connection.run(.writeMeta) {
                    $0.bind(Self.receivingKey)
                    $0.bind("begun")
                }
            }
        }
    }

    package func receive(_ records: [ArchiveRecord]) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write(evenIfMoved: true) { () throws(StoreError) in
                for record in records {
                    try connection.run(SQLiteArchiveRow.insert(record.kind)) { SQLiteArchiveRow.bind(record, to: $0) }
                }
            }
        }
    }

    package func endReceiving() async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write(evenIfMoved: true) { () throws(StoreError) in
                for key in [Self.receivingKey, Self.movedKey] { try connection.run(.deleteMeta) { $0.bind(key) } }
            }
        }
    }

    package var movedTo: String? {
        get async throws {
            try await reader.run { connection throws(StoreError) in try connection.note(Self.movedKey) }
        }
    }

    package func remainingLease() async throws -> Duration? {
        try await reader.run { [self] connection throws(StoreError) in
            let time = leaseTimeNow
            let last = try connection.first(.lastLease, bind: { $0.bind(time.epoch) }) {
                (row: inout SQLiteRow) throws(StoreError) in row.optionalInteger()
            }
            guard let last, let last, last > time.instant.milliseconds else { return nil }
            return .milliseconds(last - time.instant.milliseconds)
        }
    }

    package func markMoved(to location: String?) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write(evenIfMoved: true) { () throws(StoreError) in
                guard let location else { return try connection.run(.deleteMeta) { $0.bind(Self.movedKey) } }
                try connection.run(.writeMeta) {
                    $0.bind(Self.movedKey)
                    $0.bind(location)
                }
            }
        }
    }
}

extension SQLiteQuery {
    fileprivate static let lastLease = SQLiteQuery(
        "last lease",
        "SELECT max(until) FROM \(LeaseFile.schema).leases WHERE epoch = ?1"
    )
}

extension SQLiteConnection {
    /// Returns the text that `meta` holds under a key.
    func note(_ key: String) throws(StoreError) -> String? {
        try first(.readMeta, bind: { $0.bind(key) }) { (row: inout SQLiteRow) throws(StoreError) in row.text() }
    }
}

extension Statement {
    fileprivate func bind(_ key: ArchiveRecord.Key) {
        switch key {
        case .number(let number): bind(number)
        case .text(let text): bind(text)
        case .bytes(let bytes): bind(bytes)
        }
    }
}
