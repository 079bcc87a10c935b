import Base

extension SQLQuery {
    static let securityEvents = Table<[SQLValue]>(
        "security_events",
        [.init("jti", .text, "PRIMARY KEY"), .init("at", .integer, "NOT NULL")]
    )
    static let recordSecurityEvent = securityEvents.insert("record security event")
    static let securityEvent = securityEvents.select("security event", "WHERE jti = $1")
    /// The first of the identifiers between a prefix that ends with a colon, and the same with the next sign.
    static let securityEventOfPrefix = SQLQuery(
        "security event of prefix",
        sql: "SELECT jti, at FROM refresh_worker.security_events WHERE jti > $1 AND jti < $2 ORDER BY jti LIMIT 1"
    )
    /// Of the identifiers between a prefix that ends with a colon, and the same with the next sign, a semicolon.
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
        let end = prefix.dropLast() + ";"
        return SQLStatement(.securityEventOfPrefix, .text(prefix), .text(String(end)))
    }
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
        let end = prefix.dropLast() + ";"
        _ = try change([SQLStatement(.trimSecurityEvents, .text(prefix), .text(String(end)), .limit(count))])
    }
}
