import Base

/// The users whom an import has joined with another. Their tokens still name the former id, and their sessions have
/// moved to the other user.
///
/// They are kept among the identifiers of security events, for as long as those: no token of a session lives longer.
extension StoreTransaction {
    func recordJoin(of userID: String, with other: String, at now: Timestamp) throws {
        let prefix = JoinedUsers.prefix(of: userID)
        try keepLast(0, identifiersFrom: prefix)
        _ = try recordOnce(prefix + Hexadecimal.encode(Array(other.utf8)), at: now)
    }

    /// Returns the session that a token names, also if its user was joined with another since.
    package func session(_ id: SessionID, ofTokenFor userID: String) throws -> Session? {
        if let session = try session(id, ofUser: userID) { return session }
        guard let other = try JoinedUsers.user(identifier(from: JoinedUsers.prefix(of: userID))) else { return nil }
        return try session(id, ofUser: other)
    }
}

extension Store {
    /// Returns the session that a token names, also if its user was joined with another since.
    package func session(_ id: SessionID, ofTokenFor userID: String) async throws -> Session? {
        if let session = try await session(id, ofUser: userID) { return session }
        let identifier = try await identifier(from: JoinedUsers.prefix(of: userID))
        guard let other = JoinedUsers.user(identifier) else { return nil }
        return try await session(id, ofUser: other)
    }
}

/// The identifiers of joined users.
private enum JoinedUsers {
    static func prefix(of userID: String) -> String { UserIdentifiers.prefix("joined-user", ofUser: userID) }

    /// Returns the user that an identifier names after its prefix.
    static func user(_ identifier: String?) -> String? {
        guard let digits = identifier?.split(separator: ":").last, let bytes = Hexadecimal.decode(digits) else {
            return nil
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
