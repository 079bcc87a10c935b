internal import Base
internal import Storage

/// The content of an access token whose signature and times have been checked.
struct AccessClaims: Hashable, Sendable {
    let userID: String
    /// The session family, or `nil` for tokens that another program issued.
    let sessionID: SessionID?
    let email: String?
    let name: String?
    /// The backend's statement about the address, if the token has one.
    let emailIsVerified: Bool?
    let expiresAt: Timestamp

    private static let maximumText = 1024

    /// Reads the claims of a token of the shared secret: the worker's own, or the backend's.
    init(_ claims: JSONValue, userClaim: String = AppTokens.usualUserClaim) throws(AppError) {
        if let sessionID = try Self.sessionID(claims) {
            try self.init(claims, userID: claims.userID(of: AppTokens.usualUserClaim), sessionID: sessionID)
        } else {
            try self.init(claims, userID: claims.userID(of: userClaim), sessionID: nil)
        }
    }

    /// Reads the claims of a token that a login has signed. Its `sid` names a session of the login, not of the worker.
    init(_ claims: JSONValue, ofLoginWith userClaim: String) throws(AppError) {
        try self.init(claims, userID: claims.userID(in: userClaim), sessionID: nil)
    }

    private init(_ claims: JSONValue, userID: String, sessionID: SessionID?) throws(AppError) {
        // A token without a type is an access token. A refresh token always has one.
        guard claims["type"] == nil || claims["type"] == .string("access") else { throw .invalidToken }
        self.userID = userID
        self.sessionID = sessionID
        email = Self.text(claims["email"])
        name = Self.text(claims["name"])
        emailIsVerified = claims.emailIsVerified
        guard let expiresAt = claims["exp"]?.timestamp else { throw .invalidToken }
        self.expiresAt = expiresAt
    }

    private static func sessionID(_ claims: JSONValue) throws(AppError) -> SessionID? {
        guard let claim = claims["sid"] else { return nil }
        guard let text = claim.string, let id = SessionID(text: text) else { throw .invalidToken }
        return id
    }

    private static func text(_ value: JSONValue?) -> String? {
        guard let text = value?.string, (1...maximumText).contains(text.utf8.count) else { return nil }
        return text
    }
}

extension AccessClaims {
    /// Decides from the stored data whether the token is accepted, and returns its user as it should be stored.
    ///
    /// A user who is not stored yet is created from the claims: the backend's own login signs users up. A stored one is
    /// completed from them, such as one that an import of grants created.
    func user(stored: User?, session: Session?, at now: Timestamp) throws(AppError) -> User {
        // A tombstone is kept until the last token that names the user has expired.
        if stored?.isDeleted == true { throw .deletedUser }
        guard sessionID == nil else { return try userOfSession(session, stored: stored, at: now) }
        if stored?.isActive == false { throw .inactiveUser }
        return completed(stored ?? User(id: userID, createdAt: now), at: now)
    }

    private func userOfSession(_ session: Session?, stored: User?, at now: Timestamp) throws(AppError) -> User {
        guard let session, session.isLive(at: now) else { throw .invalidToken }
        // A correct store never keeps a session longer than its user.
        guard let stored else { throw .invalidToken }
        guard stored.isActive else { throw .inactiveUser }
        return stored
    }

    /// Adds what the backend's token says: it can contain more than the one that the user was created from.
    private func completed(_ stored: User, at now: Timestamp) -> User {
        var user = stored
        user.accept(tokenUntil: expiresAt, at: now)
        if let name, user.name == nil || user.name == "" { user.name = name }
        if let email, user.email == nil || verifies(email, of: user) {
            user.email = email
            user.emailIsVerified = emailIsVerified
        }
        return user
    }

    /// `true` if the backend says for the first time that the user's address is verified.
    private func verifies(_ email: String, of user: User) -> Bool {
        guard emailIsVerified == true, user.emailIsVerified != true else { return false }
        return user.email == email
    }
}

extension JSONValue {
    /// A time in seconds since 1970, which can have a fraction (RFC 7519, section 2).
    var timestamp: Timestamp? {
        guard case .number(let text) = self, let seconds = Double(text), seconds.magnitude < 0x1p53 else { return nil }
        return Timestamp(secondsSince1970: Int64(seconds))
    }
}
