import Base

extension SQLQuery {
    /// Identifiers that must not count twice or come back, such as those of security events and of used ID tokens.
    static let identifiers = Table<[SQLValue]>(
        "identifiers",
        [.init("identifier", .text, "PRIMARY KEY"), .init("at", .integer, "NOT NULL")]
    )
    static let recordIdentifier = identifiers.insert("record identifier")
    static let identifier = identifiers.select("identifier", "WHERE identifier = $1")
    /// The first of the identifiers between `$1` and `$2`.
    static let identifierOfPrefix = SQLQuery(
        "identifier of prefix",
        sql: """
            SELECT identifier, at FROM refresh_worker.identifiers WHERE identifier > $1 AND identifier < $2
            ORDER BY identifier LIMIT 1
            """
    )
    /// Removes the identifiers between `$1` and `$2`, except for the `$3` latest.
    static let trimIdentifiers = SQLQuery(
        "trim identifiers",
        sql: """
            DELETE FROM refresh_worker.identifiers WHERE identifier > $1 AND identifier < $2
                AND at <= (SELECT at FROM refresh_worker.identifiers WHERE identifier > $1 AND identifier < $2
                    ORDER BY at DESC LIMIT 1 OFFSET $3)
            """
    )
    static let removeOldIdentifiers = identifiers.deleteSome("remove old identifiers", where: "at < $1")
}

extension SQLStatement {
    /// Finds the first of the identifiers that begin with a prefix, which ends with a colon.
    static func firstIdentifier(from prefix: String) -> SQLStatement {
        SQLStatement(.identifierOfPrefix, .text(prefix), .text(end(ofIdentifiersFrom: prefix)))
    }

    /// Removes all but the latest of the identifiers that begin with a prefix, which ends with a colon.
    fileprivate static func keepLast(_ count: Int, identifiersFrom prefix: String) -> SQLStatement {
        SQLStatement(.trimIdentifiers, .text(prefix), .text(end(ofIdentifiersFrom: prefix)), .limit(count))
    }

    /// Returns the text that comes after all identifiers with a prefix: the next sign after a colon is a semicolon.
    private static func end(ofIdentifiersFrom prefix: String) -> String { "\(prefix.dropLast());" }
}

/// A row of `identifiers`.
struct RecordedIdentifier: Sendable {
    var identifier: String
    var at: Timestamp

    static func read(_ row: inout some SQLRow) -> RecordedIdentifier {
        RecordedIdentifier(identifier: row.text(), at: row.time())
    }
}

extension SQLStore {
    package func identifier(from prefix: String) async throws -> String? {
        try await first(.firstIdentifier(from: prefix), RecordedIdentifier.read)?.identifier
    }
}

extension SQLTransaction {
    func recordOnce(_ identifier: String, at now: Timestamp) throws -> Bool {
        try change([SQLStatement(.recordIdentifier, .text(identifier), .time(now))]) == [1]
    }

    func identifier(from prefix: String) throws -> String? {
        try first(.firstIdentifier(from: prefix), RecordedIdentifier.read)?.identifier
    }

    func time(ofIdentifier identifier: String) throws -> Timestamp? {
        try first(SQLStatement(.identifier, .text(identifier)), RecordedIdentifier.read)?.at
    }

    func keepLast(_ count: Int, identifiersFrom prefix: String) throws {
        _ = try change([.keepLast(count, identifiersFrom: prefix)])
    }
}
