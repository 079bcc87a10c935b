internal import Base
internal import HTTPServer
internal import Storage

/// The authentication of callers by their access tokens.
extension RouteDependencies {
    /// Returns the caller of a request, or throws an ``APIError`` or an error of the store.
    func caller(of request: ServerRequest) async throws -> AuthenticatedCaller {
        try await tokens.caller(presenting: try request.bearerToken())
    }

    /// Returns the user of a request, and stores a user who is not stored yet.
    func user(of request: ServerRequest) async throws -> User {
        let caller = try await caller(of: request)
        if let user = caller.storedUser { return user }
        try budgets.spendWrite(request)
        let now = time.now
        return try await store.transact { try caller.storeUser(in: $0, at: now) }
    }
}

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

    /// Reads the claims of a token of the shared secret: the worker's own, or the backend's.
    init(_ claims: JSONValue, userClaim: String = AppTokens.usualUserClaim) throws(APIError) {
        let sessionID: SessionID?
        switch claims["sid"] {
        case nil: sessionID = nil
        case .string(let text):
            guard let id = SessionID(text: text) else { throw .invalidToken }
            sessionID = id
        default: throw .invalidToken
        }
        let claim = sessionID == nil ? userClaim : AppTokens.usualUserClaim
        try self.init(claims, of: claims.userID(of: claim), sessionID)
    }

    /// Reads the claims of a token that a login has signed.
    ///
    /// Its `sid` names a session of the login, not of the worker.
    init(_ claims: JSONValue, ofLoginWith userClaim: String) throws(APIError) {
        try self.init(claims, of: claims.userID(in: userClaim), nil)
    }

    private init(_ claims: JSONValue, of userID: String, _ sessionID: SessionID?) throws(APIError) {
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

    private static func text(_ value: JSONValue?) -> String? {
        value?.string.flatMap { (1...1024).contains($0.utf8.count) ? $0 : nil }
    }
}

extension JSONValue {
    /// A time in seconds since 1970, which can have a fraction (RFC 7519, section 2).
    var timestamp: Timestamp? {
        guard case .number(let text) = self, let seconds = Double(text), seconds.magnitude < 0x1p53 else { return nil }
        return Timestamp(secondsSince1970: Int64(seconds))
    }
}

/// A caller with a valid token.
struct AuthenticatedCaller: Sendable {
    let claims: AccessClaims
    /// The user as stored when the request came, or `nil` if the claims create or complete the user.
    let storedUser: User?

    var userID: String { claims.userID }

    /// Decides again from the data stored now.
    func check(in transaction: any StoreTransaction, at now: Timestamp) throws -> (user: User, stored: User?) {
        let stored = try transaction.user(userID)
        let session = try claims.sessionID.flatMap { try transaction.session($0) }
        return (try claims.user(stored: stored, session: session, at: now), stored)
    }

    /// Decides again, and stores the fields that the claims add to the user.
    func storeUser(in transaction: any StoreTransaction, at now: Timestamp) throws -> User {
        let (user, stored) = try check(in: transaction, at: now)
        if stored == nil { try transaction.insert(user) } else if user != stored { try transaction.update(user) }
        return user
    }
}

extension ServerRequest {
    /// Returns the bearer token of the request.
    func bearerToken() throws(APIError) -> String {
        switch BearerToken(of: self) {
        case .missing: throw .missingToken
        case .malformed: throw .invalidToken
        case .present(let token): return token
        }
    }
}

extension AccessClaims {
    /// Decides from the stored data whether the token is accepted, and returns its user as it should be stored.
    ///
    /// A user who is not stored yet is created from the claims: PayPulse's login signs users up itself. A stored one is
    /// completed from them, such as one that an import of grants created.
    func user(stored: User?, session: Session?, at now: Timestamp) throws(APIError) -> User {
        // A tombstone is kept until the last token that names the user has expired.
        if stored?.isDeleted == true { throw .deletedUser }
        if let sessionID {
            // A correct store never keeps a session longer than its user.
            guard let session, session.id == sessionID, session.userID == userID, session.isLive(at: now), let stored
            else { throw .invalidToken }
            guard stored.isActive else { throw .inactiveUser }
            return stored
        }
        if stored?.isActive == false { throw .inactiveUser }
        return completed(stored ?? User(id: userID, createdAt: now), at: now)
    }

    /// Adds what the backend's token says: it can contain more than the one that the user was created from.
    private func completed(_ stored: User, at now: Timestamp) -> User {
        var user = stored
        user.accept(tokenUntil: expiresAt, at: now)
        if user.name?.isEmpty ?? true { user.name = name ?? user.name }
        guard let email else { return user }
        let isNewlyVerified = user.email == email && user.emailIsVerified != true && emailIsVerified == true
        guard user.email == nil || isNewlyVerified else { return user }
        user.email = email
        user.emailIsVerified = emailIsVerified
        return user
    }
}
