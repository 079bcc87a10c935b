internal import Base
internal import Crypto
internal import Storage

/// The two tokens of an app that has signed in.
struct SessionTokenPair: Sendable {
    static let fullAccessLifetime: Duration = .seconds(1800)
    static let refreshLifetime: Duration = .seconds(30 * 86_400)

    let accessToken: Secret
    let refreshToken: Secret
    /// The remaining lifetime of the access token.
    let accessLifetime: Duration

    /// Returns the hash that is stored for a refresh token.
    static func hash(_ token: Secret) -> [UInt8] { Digest.sha256(Array(token.reveal().utf8)) }
}

extension AppSessions {
    /// Issues two new tokens.
    ///
    /// The short-lived one names its family, so that it is refused once the family has ended. The other is valid for
    /// one use.
    func tokenPair(for user: User, session: SessionID, at now: Timestamp) throws(AppError) -> SessionTokenPair {
        // Without the secret, the routes that issue sessions do not exist.
        guard let signer = dependencies.tokens.signer else { throw .unknownPath }
        func sign(type: String, email: String? = nil, lifetime: Duration) -> Secret {
            var claims = JSONLine()
            claims.field("sub", user.id)
            if let email { claims.field("email", email) }
            claims.field("type", type)
            claims.field("sid", session.description)
            // It makes the token differ from others of the same second.
            claims.field("jti", SessionID.random(from: dependencies.random).description)
            claims.field("iat", now.milliseconds / 1000)
            claims.field("exp", (now + lifetime).milliseconds / 1000)
            return signer.sign(claims)
        }
        return SessionTokenPair(
            accessToken: sign(type: "access", email: user.email ?? "", lifetime: SessionTokenPair.fullAccessLifetime),
            refreshToken: sign(type: "refresh", lifetime: SessionTokenPair.refreshLifetime),
            accessLifetime: SessionTokenPair.fullAccessLifetime
        )
    }
}
