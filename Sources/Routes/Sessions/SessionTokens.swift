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

extension RouteDependencies {
    /// Issues two new tokens.
    ///
    /// The short-lived one names its family, so that it is refused once the family has ended. The other is valid for
    /// one use.
    func tokenPair(for user: User, session: SessionID, at now: Timestamp) throws(APIError) -> SessionTokenPair {
        // Without the secret, the routes that issue sessions do not exist.
        guard let signer = tokens.signer else { throw .unknownPath }
        func sign(_ type: String, email: String? = nil, _ lifetime: Duration) -> Secret {
            var claims = JSONLine()
            claims.field("sub", user.id)
            if let email { claims.field("email", email) }
            claims.field("type", type)
            claims.field("sid", session.description)
            // It makes the token differ from others of the same second.
            claims.field("jti", SessionID.random(from: random).description)
            claims.field("iat", now.milliseconds / 1000)
            claims.field("exp", (now + lifetime).milliseconds / 1000)
            return signer.sign(claims)
        }
        return SessionTokenPair(
            accessToken: sign("access", email: user.email ?? "", SessionTokenPair.fullAccessLifetime),
            refreshToken: sign("refresh", SessionTokenPair.refreshLifetime),
            accessLifetime: SessionTokenPair.fullAccessLifetime
        )
    }
}

/// The claims of a refresh token whose signature was checked.
///
/// A token that the worker issued names its session. A token of the former backend has `sub` or `user_id`, `email` and
/// `exp`. Its session's id comes from its hash, so that simultaneous requests with one former token share one session.
struct RefreshClaims: Hashable, Sendable {
    let userID: String
    let sessionID: SessionID
    let hash: [UInt8]
    /// `true` if the token's own times are valid, as an access token's must be.
    let isTimely: Bool
    /// The expiry of a former token, or `nil` for a token that the worker issued.
    private let formerExpiry: Timestamp?

    init?(_ claims: JSONValue, of token: String, userClaim: String, isTimely: Bool) {
        guard claims["type"]?.string == "refresh" else { return nil }
        self.isTimely = isTimely
        hash = SessionTokenPair.hash(Secret(token))
        if claims["sid"] == nil {
            let userID: String
            do throws(APIError) {
                userID = try claims.userID(of: userClaim)
            } catch {
                // A former token that does not name its user cannot begin a session.
                return nil
            }
            guard let expiry = claims["exp"]?.timestamp,
                let sessionID = SessionID(bytes: Array(hash.prefix(SessionID.byteCount)))
            else { return nil }
            (self.userID, self.sessionID, formerExpiry) = (userID, sessionID, expiry)
        } else {
            guard let userID = claims["sub"]?.string,
                let sessionID = claims["sid"]?.string.flatMap({ SessionID(text: $0) })
            else { return nil }
            (self.userID, self.sessionID, formerExpiry) = (userID, sessionID, nil)
        }
    }

    /// `true` for a former token that can begin a session now.
    ///
    /// After `end`, no former token can.
    func mayBegin(at now: Timestamp, until end: Timestamp?) -> Bool {
        formerExpiry != nil && isTimely && end.map { now < $0 } ?? false
    }

    /// Records that a former token has begun its session, or never will, and returns `false` if that is recorded
    /// already.
    ///
    /// Without the record, a token whose session has ended would begin another one.
    func recordFormer(in transaction: any StoreTransaction, at now: Timestamp) throws -> Bool {
        guard let formerExpiry else { return false }
        // Recorded ids are deleted after a while. This one must outlast the token.
        let recordedAt = max(now, formerExpiry - Retention.securityEvents + .seconds(86_400))
        return try transaction.record(
            securityEvent: "former-refresh-token:" + Hexadecimal.encode(hash),
            at: recordedAt
        )
    }

    /// The fields that identify the session in a log line.
    ///
    /// They contain neither a token nor personal data.
    var logFields: KeyValuePairs<String, String> { ["session": sessionID.description] }
}

/// The stored users that a Google account can be linked to by its e-mail address.
package enum EmailLinking: String, CaseIterable, Sendable {
    /// Users whose address was verified by Google, or by the backend according to its token.
    case verified
    /// Users with any address, even one that its user has only claimed.
    case any
    /// No user.
    case never

    /// Returns the user with the account's id, otherwise the user with its e-mail address if the address is sufficient
    /// proof.
    ///
    /// An address counts only if Google decides who owns it, and only for a user without a Google account: otherwise a
    /// former owner of an address could sign in as its present user. By default the stored address must be verified as
    /// well: an attacker might have signed up elsewhere with the victim's address, and would share the account once the
    /// victim signs in. An address that several users have does not identify one of them.
    func user(for identity: GoogleIdentity, in transaction: any StoreTransaction) throws -> User? {
        if let user = try transaction.user(withGoogleUserID: identity.googleUserID) { return user }
        guard identity.googleIsAuthorityForEmail else { return nil }
        let candidates = try transaction.users(withEmail: identity.email).filter { user in
            user.googleUserID == nil && mayLink(user) && !user.isDeleted
        }
        return candidates.count == 1 ? candidates[0] : nil
    }

    private func mayLink(_ user: User) -> Bool {
        switch self {
        case .verified: user.emailIsVerified == true
        case .any: true
        case .never: false
        }
    }
}
