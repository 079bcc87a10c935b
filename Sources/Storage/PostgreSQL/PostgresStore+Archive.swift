import Base

extension PostgresStore: StoreArchive {
    /// The time for a count: the server takes a while for the rows of a large table.
    private static let countTimeout: Duration = .seconds(900)
    /// The key in `meta` of the note that this store receives a copy.
    private static let receivingKey = "receiving_copy"
    /// The key in `meta` of the note that the database was moved.
    private static let movedKey = "moved_to"

    private static let noteReceiving = PostgresQuery(
        "note a copy on its way",
        """
        INSERT INTO refresh_worker.meta (key, value) SELECT $1, 'begun' WHERE \(PostgresArchiveRow.isEmpty)
        ON CONFLICT DO NOTHING
        """
    )
    private static let lastLease = PostgresQuery(
        "last lease",
        "SELECT max(lease_until) FROM refresh_worker.grant_schedule WHERE lease_epoch = $1"
    )
    private static let deleteMeta = PostgresQuery("delete meta", "DELETE FROM refresh_worker.meta WHERE key = $1")
    /// Moves the sequences past the copied rows.
    private static let moveSequences = PostgresQuery(
        "move sequences",
        """
        SELECT setval(pg_get_serial_sequence('refresh_worker.grant_events', 'seq'),
                coalesce((SELECT max(seq) FROM refresh_worker.grant_events), 0) + 1, false),
            setval(pg_get_serial_sequence('refresh_worker.notices', 'seq'),
                coalesce((SELECT max(seq) FROM refresh_worker.notices), 0) + 1, false)
        """
    )

    package func count(of kind: ArchiveRecord.Kind) async throws -> Int {
        try await scanner.rows(PostgresArchiveRow.count(kind), timeout: Self.countTimeout) {
            (row: inout PostgresRow) throws(StatementFailure) in
            Int(row.integer())
        }.first ?? 0
    }

    package func records(
        of kind: ArchiveRecord.Kind,
        after key: ArchiveRecord.Key?,
        atMost count: Int
    ) async throws -> [ArchiveRecord] {
        try await scanner.rows(
            key == nil ? PostgresArchiveRow.firstPage(of: kind) : PostgresArchiveRow.nextPage(of: kind),
            bind: { parameters in
                parameters.bind(Int64(max(0, count)))
                if let key { parameters.bind(key) }
            },
            read: { (row: inout PostgresRow) throws(StatementFailure) in try PostgresArchiveRow.read(kind, from: &row) }
        )
    }

    package func lastKey(of kind: ArchiveRecord.Kind) async throws -> ArchiveRecord.Key? {
        try await scanner.first(PostgresArchiveRow.last(of: kind)) {
            (row: inout PostgresRow) throws(StatementFailure) in
            PostgresArchiveRow.key(of: kind, from: &row)
        }
    }

    package var isReceiving: Bool {
        get async throws {
            try await note(Self.receivingKey) != nil
        }
    }

    package var movedTo: String? {
        get async throws { try await note(Self.movedKey) }
    }

    package func note(_ key: String) async throws -> String? {
        try await reader.first(.readMeta, bind: { $0.bind(key) }) { (row: inout PostgresRow) throws(StatementFailure) in
            row.text()
        }
    }

    package func remainingLease() async throws -> Duration? {
        let now = leaseTimeNow.instant.milliseconds
        let last = try await scanner.rows(
            Self.lastLease,
            timeout: Self.countTimeout,
            bind: { $0.bind(Self.epoch) },
            read: { (row: inout PostgresRow) throws(StatementFailure) in row.optionalInteger() }
        )
        guard let last = last.first ?? nil, last > now else { return nil }
        return .milliseconds(last - now)
    }

    package func markMoved(to location: String?) async throws {
        try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = StatementBatch(until: deadline)
            // A writer at the same time either finishes before the note, or sees it: see the use check.
            batch.add(.takeLock) { $0.bind(PostgresSchema.moveLock) }
            batch.add(location == nil ? Self.deleteMeta : .writeMeta) {
                $0.bind(Self.movedKey)
                if let location { $0.bind(location) }
            }
            _ = try commit(batch, isRepeatable: true, on: connection, until: deadline)
        }
    }

    package func beginReceiving() async throws {
        let isNoted = try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = StatementBatch(until: deadline)
            batch.addWriterLock()
            batch.add(Self.noteReceiving) { $0.bind(Self.receivingKey) }
            let position = batch.add(.readMeta) { $0.bind(Self.receivingKey) }
            return try commit(batch, isRepeatable: true, on: connection, until: deadline)[position].rowCount == 1
        }
        guard isNoted else {
            throw StoreError(.conflict, "\(address) is not empty, and a copy goes only into an empty one.")
        }
    }

    package func receive(_ records: [ArchiveRecord]) async throws {
        try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = StatementBatch(until: deadline)
            ArchivePage(records: records).move(to: &batch)
            _ = try commit(batch, on: connection, until: deadline)
        }
    }

    package func endReceiving() async throws {
        try await writer.run { [self] connection, deadline throws(StatementFailure) in
            var batch = StatementBatch(until: deadline)
            batch.add(Self.moveSequences)
            for key in [Self.receivingKey, Self.movedKey] { batch.add(Self.deleteMeta) { $0.bind(key) } }
            _ = try commit(batch, isRepeatable: true, on: connection, until: deadline)
        }
    }
}

extension Parameters {
    fileprivate mutating func bind(_ key: ArchiveRecord.Key) {
        switch key {
        case .number(let number): bind(number)
        case .text(let text): bind(text)
        case .bytes(let bytes): bind(bytes)
        }
    }
}
