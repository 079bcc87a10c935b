internal import Clocks
internal import JSON
internal import Secrets
internal import Store

/// Both tokens of an app that has signed in.
struct TokenPair: Sendable {
    let accessToken: Secret
    let refreshToken: Secret
}

/// What a refresh token says, once its signature and its times are known to be good.
struct RefreshClaims: Hashable, Sendable {
    let userID: String
    let sessionID: SessionID

    init?(_ claims: JSONValue) {
        guard claims["type"]?.string == "refresh", let userID = claims["sub"]?.string,
            let sessionID = claims["sid"]?.string.flatMap({ SessionID(text: $0) })
        else { return nil }
        self.userID = userID
        self.sessionID = sessionID
    }
}

/// Makes the tokens of a session.
struct SessionTokens: Sendable {
    static let accessLifetime: Duration = .seconds(1800)
    static let refreshLifetime: Duration = .seconds(30 * 86_400)

    let signer: TokenSigner
    let random: any RandomSource

    /// A short-lived token that names its family, so that it is refused once that has ended.
    func accessToken(for user: User, session: SessionID, at now: Timestamp) -> Secret {
        var claims = JSONLine()
        claims.field("sub", user.id)
        claims.field("email", user.email ?? "")
        claims.field("type", "access")
        claims.field("sid", session.description)
        claims.lifetime(from: now, Self.accessLifetime)
        return signer.sign(claims)
    }

    /// A token that is good for one use; its random name makes it unlike any other of the same second.
    func refreshToken(forUser userID: String, session: SessionID, at now: Timestamp) -> Secret {
        var claims = JSONLine()
        claims.field("sub", userID)
        claims.field("type", "refresh")
        claims.field("sid", session.description)
        claims.field("jti", SessionID.random(from: random).description)
        claims.lifetime(from: now, Self.refreshLifetime)
        return signer.sign(claims)
    }

    /// What a refresh token is stored as.
    static func hash(_ token: Secret) -> [UInt8] { Digest.sha256(Array(token.reveal().utf8)) }
}

extension JSONLine {
    fileprivate mutating func lifetime(from now: Timestamp, _ span: Duration) {
        field("iat", now.milliseconds / 1000)
        field("exp", (now + span).milliseconds / 1000)
    }
}
