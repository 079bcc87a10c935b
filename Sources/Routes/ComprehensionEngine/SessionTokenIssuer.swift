internal import Base
internal import Crypto
internal import Storage

/// Issues the tokens of a session.
struct SessionTokenIssuer: Sendable {
    static let accessLifetime: Duration = .seconds(1800)
    static let refreshLifetime: Duration = .seconds(30 * 86_400)

    let signer: TokenSigner
    let random: any RandomSource

    /// Returns two new tokens.
    func pair(for user: User, session: SessionID, at now: Timestamp) -> SessionTokenPair {
        SessionTokenPair(
            accessToken: accessToken(for: user, session: session, at: now),
            refreshToken: refreshToken(forUser: user.id, session: session, at: now),
            accessLifetime: Self.accessLifetime
        )
    }

    /// Returns a short-lived token that names its family, so that it is refused once the family has ended.
    private func accessToken(for user: User, session: SessionID, at now: Timestamp) -> Secret {
        var claims = JSONLine()
        claims.field("sub", user.id)
        claims.field("email", user.email ?? "")
        claims.field("type", "access")
        claims.field("sid", session.description)
        claims.field("jti", SessionID.random(from: random).description)
        claims.lifetime(from: now, Self.accessLifetime)
        return signer.sign(claims)
    }

    /// Returns a token that is valid for one use; the `jti` makes it differ from others of the same second.
    private func refreshToken(forUser userID: String, session: SessionID, at now: Timestamp) -> Secret {
        var claims = JSONLine()
        claims.field("sub", userID)
        claims.field("type", "refresh")
        claims.field("sid", session.description)
        claims.field("jti", SessionID.random(from: random).description)
        claims.lifetime(from: now, Self.refreshLifetime)
        return signer.sign(claims)
    }

    /// Returns the hash that is stored for a refresh token.
    static func hash(_ token: Secret) -> [UInt8] { Digest.sha256(Array(token.reveal().utf8)) }
}

extension JSONLine {
    fileprivate mutating func lifetime(from now: Timestamp, _ lifetime: Duration) {
        field("iat", now.milliseconds / 1000)
        field("exp", (now + lifetime).milliseconds / 1000)
    }
}
