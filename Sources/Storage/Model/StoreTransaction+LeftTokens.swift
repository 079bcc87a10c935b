package import Base

extension StoreTransaction {
    /// Remembers the refresh token that the user is about to end or to replace, so that no import brings it back.
    ///
    /// Its date does not tell: a former backend that refreshes its own copy writes a newer one. It lives on at Google
    /// if another user has the same account, for any time, so no clean-up reaches its record.
    package func rememberRefreshToken(of grant: Grant, at now: Timestamp) throws {
        try remember(Self.identifier(of: grant.refreshToken, in: grant.id), of: grant, at: now)
    }

    /// Forgets every token that the user of the grant has left.
    func forgetLeftTokens(of grant: GrantID) throws { try keepLast(0, identifiersFrom: Self.prefix(of: grant)) }

    /// `true` if the user of the grant has ended or replaced this refresh token here.
    package func hasLeft(_ token: Grant.RefreshToken?, of grant: Grant) throws -> Bool {
        guard let identifier = Self.identifier(of: token, in: grant.id) else { return false }
        return try hasRecorded(identifier)
    }

    /// Remembers the refresh token that the app or an import brought and an answer has replaced, so that a repeated
    /// import does not bring it back.
    ///
    /// Only this worker knows the rotated ones, and a server can rotate every hour, so they are not remembered.
    package func rememberSpentToken(of grant: Grant, at now: Timestamp) throws {
        guard !grant.hasRotatedToken else { return }
        try remember(Self.identifier(of: grant.refreshToken, in: grant.id, isSpent: true), of: grant, at: now)
    }

    /// `true` if the app or an import brought this refresh token for the grant before, and an answer has replaced it.
    package func hasSpent(_ token: Grant.RefreshToken?, of grant: Grant) throws -> Bool {
        guard let identifier = Self.identifier(of: token, in: grant.id, isSpent: true) else { return false }
        return try hasRecorded(identifier)
    }

    private func remember(_ identifier: String?, of grant: Grant, at now: Timestamp) throws {
        guard let identifier else { return }
        _ = try recordOnce(identifier, at: now + Retention.leftTokens)
        try keepLast(Retention.leftTokensPerGrant, identifiersFrom: Self.prefix(of: grant.id))
    }

    private static func identifier(of token: Grant.RefreshToken?, in grant: GrantID, isSpent: Bool = false) -> String? {
        guard let marks = token?.marks else { return nil }
        return prefix(of: grant) + (isSpent ? "spent:" : "") + Hexadecimal.encode(marks.digest.bytes)
    }

    private static func prefix(of grant: GrantID) -> String { "\(Retention.leftTokenPrefix)\(grant):" }
}
