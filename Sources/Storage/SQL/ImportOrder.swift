package import Base

/// What an import must not overtake: a disconnect before the grant was there, and tokens that are newer than they seem.
///
/// Both are kept among the identifiers of security events, for as long as those: no move takes longer.
extension StoreTransaction {
    /// Records that a user who has no grant here has disconnected, so that no import connects the user with an older
    /// grant.
    package func recordDisconnect(ofUserWithoutGrant userID: String, at now: Timestamp) throws {
        try keepLast(0, identifiersFrom: ImportOrder.disconnects(of: userID))
        _ = try recordOnce(ImportOrder.lastDisconnect(of: userID), at: now)
    }

    /// Returns when a user without a grant has disconnected, if that was lately.
    package func disconnectTime(ofUserWithoutGrant userID: String) throws -> Timestamp? {
        try time(ofIdentifier: ImportOrder.lastDisconnect(of: userID))
    }

    /// Records the date of tokens that an import stores now. Their connection has the time of storing. A secret that
    /// was written between its reading and its storing would otherwise seem older.
    package func recordDate(_ date: Timestamp, ofTokensImportedFor grant: GrantID, at now: Timestamp) throws {
        let prefix = ImportOrder.dates(of: grant)
        try keepLast(0, identifiersFrom: prefix)
        _ = try recordOnce("\(prefix)\(date.milliseconds)", at: now)
    }
}

extension SQLStore {
    package func disconnectTime(ofUserWithoutGrant userID: String) async throws -> Timestamp? {
        let identifier = ImportOrder.lastDisconnect(of: userID)
        return try await first(SQLStatement(.identifier, .text(identifier)), RecordedIdentifier.read)?.at
    }

    package func dateOfTokens(importedFor grant: GrantID, at storedAt: Timestamp) async throws -> Timestamp? {
        let prefix = ImportOrder.dates(of: grant)
        let record = try await first(.firstIdentifier(from: prefix), RecordedIdentifier.read)
        guard let record, record.at == storedAt, let date = Int64(record.identifier.dropFirst(prefix.count)) else {
            return nil
        }
        return Timestamp(milliseconds: date)
    }
}

/// The identifiers of what an import must not overtake.
enum ImportOrder {
    fileprivate static func disconnects(of userID: String) -> String {
        UserIdentifiers.prefix("disconnected-user", ofUser: userID)
    }

    static func lastDisconnect(of userID: String) -> String { disconnects(of: userID) + "last" }

    fileprivate static func dates(of grant: GrantID) -> String { "imported-tokens:\(grant):" }
}
