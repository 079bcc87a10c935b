import Base

extension SQLQuery {
    static let securityEvents = Table<[SQLValue]>(
        "security_events",
        [.init("jti", .text, "PRIMARY KEY"), .init("at", .integer, "NOT NULL")]
    )
    static let recordSecurityEvent = securityEvents.insert("record security event")
    static let securityEvent = securityEvents.select("security event", "WHERE jti = $1")
    /// The first of the identifiers between `$1` and `$2`.
    static let securityEventOfPrefix = SQLQuery(
        "security event of prefix",
        sql: "SELECT jti, at FROM refresh_worker.security_events WHERE jti > $1 AND jti < $2 ORDER BY jti LIMIT 1"
    )
    /// Removes the identifiers between `$1` and `$2`, except for the `$3` latest.
    static let trimSecurityEvents = SQLQuery(
        "trim security events",
        sql: """
            DELETE FROM refresh_worker.security_events WHERE jti > $1 AND jti < $2
                AND at <= (SELECT at FROM refresh_worker.security_events WHERE jti > $1 AND jti < $2
                    ORDER BY at DESC LIMIT 1 OFFSET $3)
            """
    )
    /// Version 0.1.0 recorded tokens that users left for as long as security events.
    static let keepLeftTokens = SQLQuery(
        "keep left tokens",
        sql: """
            UPDATE refresh_worker.security_events SET at = at + \(Retention.leftTokens.wholeMilliseconds)
            WHERE at < $1 AND substr(jti, 1, \(Retention.leftTokenPrefix.utf8.count)) = '\(Retention.leftTokenPrefix)'
            """
    )
    static let removeOldSecurityEvents = securityEvents.deleteSome("remove old security events", where: "at < $1")
}

extension SQLStatement {
    /// Finds the first of the identifiers that begin with a prefix, which ends with a colon.
    static func firstIdentifier(from prefix: String) -> SQLStatement {
        SQLStatement(.securityEventOfPrefix, .text(prefix), .text(end(ofIdentifiersFrom: prefix)))
    }

    /// Removes all but the latest of the identifiers that begin with a prefix, which ends with a colon.
    fileprivate static func keepLast(_ count: Int, identifiersFrom prefix: String) -> SQLStatement {
        SQLStatement(.trimSecurityEvents, .text(prefix), .text(end(ofIdentifiersFrom: prefix)), .limit(count))
    }

    /// Returns the text that comes after all identifiers with a prefix: the next sign after a colon is a semicolon.
    private static func end(ofIdentifiersFrom prefix: String) -> String { "\(prefix.dropLast());" }
}

/// A row of `security_events`.
struct RecordedSecurityEvent: Sendable {
    var identifier: String
    var at: Timestamp

    static func read(_ row: inout some SQLRow) -> RecordedSecurityEvent {
        RecordedSecurityEvent(identifier: row.text(), at: row.time())
    }
}

extension SQLStore {
    package func identifier(from prefix: String) async throws -> String? {
        try await first(.firstIdentifier(from: prefix), RecordedSecurityEvent.read)?.identifier
    }
}

extension SQLTransaction {
    func recordOnce(_ identifier: String, at now: Timestamp) throws -> Bool {
        try change([SQLStatement(.recordSecurityEvent, .text(identifier), .time(now))]) == [1]
    }

    func identifier(from prefix: String) throws -> String? {
        try first(.firstIdentifier(from: prefix), RecordedSecurityEvent.read)?.identifier
    }

    func time(ofIdentifier identifier: String) throws -> Timestamp? {
        try first(SQLStatement(.securityEvent, .text(identifier)), RecordedSecurityEvent.read)?.at
    }

    func keepLast(_ count: Int, identifiersFrom prefix: String) throws {
        _ = try change([.keepLast(count, identifiersFrom: prefix)])
    }
}
