import Clocks
import JSON
import Observability
import Secrets
import Store

/// A grant as JSON: the output of `grants list`, `grants show` and `grants export`.
enum GrantDocument {
    /// Returns all fields except the tokens.
    static func line(of grant: Grant) -> JSONLine {
        var line = JSONLine()
        line.field("user_id", grant.userID)
        line.field("state", grant.state.rawValue)
        line.optional("reason", grant.reason == .none ? nil : grant.reason.rawValue)
        line.field("since", grant.since.iso8601)
        line.optional("google_email", grant.owner.email)
        line.optional("scope", grant.scope.isEmpty ? nil : grant.scope)
        line.field("client_id", grant.clientID)
        line.optional("expires_at", grant.accessToken?.expiresAt.iso8601)
        line.optional("due_at", grant.dueAt?.iso8601)
        line.optional("last_success_at", grant.lastSuccessAt?.iso8601)
        line.field("attempts", grant.attempts)
        line.field("generation", grant.generation)
        line.field("grant", grant.id.description)
        return line
    }

    /// Returns the same fields with the grant's warnings.
    static func wholeLine(of grant: Grant, at now: Timestamp) -> JSONLine {
        var line = line(of: grant)
        line.optional("refresh_token_expires_at", grant.refreshToken?.expiresAt?.iso8601)
        line.array("warnings") { warnings in
            for warning in GrantWarning.all(of: grant, at: now) { warnings.element(warning.rawValue) }
        }
        return line
    }

    /// Returns all fields that `grants import` reads, including the tokens.
    ///
    /// Unknown members are left out.
    static func exported(_ grant: Grant, from vault: TokenVault) throws(SealError) -> JSONLine {
        // If the user asked to end the grant, its tokens are not exported, even while their revocation is pending.
        let keepsTokens = !(grant.state == .disconnected && grant.reason == .userRequest)
        let accessToken = keepsTokens ? try vault.openAccessToken(of: grant) : nil
        let refreshToken = keepsTokens ? try vault.openRefreshToken(of: grant) : nil
        var line = JSONLine()
        line.field("user_id", grant.userID)
        line.field("client_id", grant.clientID)
        if let accessToken, let known = grant.accessToken {
            line.field("access_token", accessToken.reveal())
            line.field("token_type", known.type)
            line.field("created_at", known.obtainedAt.iso8601)
            line.field("expires_at", known.expiresAt.iso8601)
            line.field("expires_in", (max(.zero, known.expiresAt - known.obtainedAt)).wholeMilliseconds / 1000)
        }
        if let refreshToken {
            line.field("refresh_token", refreshToken.reveal())
            line.known("refresh_token_expires_at", grant.refreshToken?.expiresAt?.iso8601)
        }
        line.known("scope", grant.scope.isEmpty ? nil : grant.scope)
        line.known("google_user_id", grant.owner.googleUserID)
        line.known("google_email", grant.owner.email)
        line.known("google_name", grant.owner.name)
        if let isVerified = grant.owner.emailIsVerified { line.field("google_verified_email", isVerified) }
        line.field("state", grant.state.rawValue)
        line.known("reason", grant.reason == .none ? nil : grant.reason.rawValue)
        line.field("since", grant.since.iso8601)
        return line
    }
}

/// A condition of a connected grant that an operator should know about.
enum GrantWarning: String, Sendable {
    /// The refresh token expires soon.
    case refreshTokenEnds = "refresh_token_ends"
    /// The grant was not refreshed for so long that Google may expire its refresh token.
    case idle
    /// The access token cannot be renewed when it expires.
    case noRefreshToken = "no_refresh_token"

    static func all(of grant: Grant, at now: Timestamp) -> [GrantWarning] {
        guard grant.state.isConnected else { return [] }
        guard let refreshToken = grant.refreshToken else { return [.noRefreshToken] }
        var warnings: [GrantWarning] = []
        if let end = refreshToken.expiresAt, end < now + GrantStatistics.warningBeforeEnd {
            warnings.append(.refreshTokenEnds)
        }
        if (grant.lastSuccessAt ?? grant.createdAt) < now - GrantStatistics.idleBeforeWarning { warnings.append(.idle) }
        return warnings
    }

    var sentence: String {
        switch self {
        case .refreshTokenEnds: "the refresh token expires soon: have the user sign in again before then"
        case .idle: "not refreshed for months: Google forgets refresh tokens that are not used for six"
        case .noRefreshToken: "no refresh token is stored: the user must sign in again when the access token expires"
        }
    }
}

extension JSONLine {
    fileprivate mutating func optional(_ key: String, _ value: String?) {
        if let value { field(key, value) } else { null(key) }
    }

    fileprivate mutating func known(_ key: String, _ value: String?) {
        if let value { field(key, value) }
    }
}
