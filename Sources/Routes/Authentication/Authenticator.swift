internal import Base
internal import Crypto
internal import HTTPServer
internal import Storage

/// Authenticates callers by their access tokens.
struct Authenticator: Sendable {
    let store: any Store
    let signer: TokenSigner
    let time: any TimeSource

    /// Returns the caller of a request; throws an ``AuthenticationRefusal`` or an error of the store.
    func caller(of request: ServerRequest) async throws -> AuthenticatedCaller {
        try await caller(with: try claims(of: try request.bearerToken()))
    }

    /// Returns the caller that the claims name; the token's signature and times must be checked already.
    func caller(with claims: JSONValue) async throws -> AuthenticatedCaller {
        let claims = try AccessClaims(claims)
        var session: Session?
        if let id = claims.sessionID { session = try await store.session(id) }
        let user = try await store.user(claims.userID)
        let outcome = try AuthenticationRules.decide(claims, user: user, session: session, at: time.now)
        return AuthenticatedCaller(claims: claims, outcome: outcome)
    }

    /// Returns the claims of one of the app's own tokens, whatever its type.
    func claims(of token: String) throws(AuthenticationRefusal) -> JSONValue {
        do throws(SignatureError) {
            return try signer.claims(of: token, at: time.now)
        } catch .expired {
            throw .expired
        } catch {
            throw .invalid
        }
    }

    /// Returns the claims of a refresh token, even if it has expired; `nil` for any other token.
    ///
    /// Its session decides whether it is valid: the response may have been lost on the token's last day, or a clock
    /// that was ahead may have made the token.
    func refreshClaims(of token: String) -> RefreshClaims? {
        do throws(SignatureError) {
            let claims = try signer.signedClaims(of: token)
            return RefreshClaims(claims, of: token, isTimely: TokenSigner.areTimely(claims, at: time.now))
        } catch {
            return nil
        }
    }
}

extension Authenticator {
    /// Returns the user of a request, and stores a user who is not stored yet.
    func user(of request: ServerRequest) async throws -> User {
        let caller = try await caller(of: request)
        if case .stored(let user) = caller.outcome { return user }
        let now = time.now
        return try await store.transact { try caller.storeUser(in: $0, at: now) }
    }
}

/// The content of an access token whose signature and times have been checked.
struct AccessClaims: Hashable, Sendable {
    let userID: String
    /// The session family; `nil` for tokens that another program issued.
    let sessionID: SessionID?
    let email: String?
    let name: String?
    /// The backend's statement about the address, if the token has one.
    let emailIsVerified: Bool?
    let expiresAt: Timestamp

    init(_ claims: JSONValue) throws(AuthenticationRefusal) {
        // A token without a type is an access token; a refresh token always has one.
        guard claims["type"] == nil || claims["type"] == .string("access") else { throw .invalid }
        userID = try UserIdentifier(claims).text
        switch claims["sid"] {
        case nil: sessionID = nil
        case .string(let text):
            guard let id = SessionID(text: text) else { throw .invalid }
            sessionID = id
        default: throw .invalid
        }
        email = Self.text(claims["email"])
        name = Self.text(claims["name"])
        // An address that the user has only claimed must not be linked to the Google account that owns it.
        switch claims["email_verified"] {
        case nil, .null: emailIsVerified = nil
        case let value?: emailIsVerified = value == .bool(true) || value == .string("true")
        }
        guard let expiresAt = claims["exp"]?.timestamp else { throw .invalid }
        self.expiresAt = expiresAt
    }

    private static func text(_ value: JSONValue?) -> String? {
        value?.string.flatMap { (1...1024).contains($0.utf8.count) ? $0 : nil }
    }
}

extension JSONValue {
    /// A time in seconds since 1970, which may have a fraction (RFC 7519, section 2).
    var timestamp: Timestamp? {
        guard case .number(let text) = self, let seconds = Double(text), seconds.magnitude < 0x1p53 else { return nil }
        return Timestamp(secondsSince1970: Int64(seconds))
    }
}

/// A caller with a valid token, and the user as stored when the request came.
struct AuthenticatedCaller: Sendable {
    let claims: AccessClaims
    let outcome: AuthenticationRules.Outcome

    var userID: String { claims.userID }
}

extension AuthenticatedCaller {
    /// Decides again from the data stored now, and stores the fields that the claims add to the user.
    func storeUser(in transaction: any StoreTransaction, at now: Timestamp) throws -> User {
        let user = try transaction.user(userID)
        let session = try claims.sessionID.flatMap { try transaction.session($0) }
        switch try AuthenticationRules.decide(claims, user: user, session: session, at: now) {
        case .stored(let user): return user
        case .new(let new):
            try transaction.insert(new)
            return new
        case .completed(let user):
            try transaction.update(user)
            return user
        }
    }
}

/// The reason why a caller is refused; each family of routes has its own response to it.
enum AuthenticationRefusal: Error, Hashable, Sendable {
    /// The request does not have a token.
    case missing
    /// The token, its session or its user is invalid; the response does not say which.
    case invalid
    /// The token has expired.
    case expired
    /// The user was deleted, and the token was issued before.
    case deleted
    /// The backend has disabled the user.
    case inactive
}

extension ServerRequest {
    /// Returns the bearer token of the request.
    func bearerToken() throws(AuthenticationRefusal) -> String {
        switch BearerToken(of: self) {
        case .missing: throw .missing
        case .malformed: throw .invalid
        case .present(let token): return token
        }
    }
}

/// Decides from the stored data whether a valid access token is accepted.
enum AuthenticationRules {
    enum Outcome: Hashable, Sendable {
        /// A stored user, unchanged.
        case stored(User)
        /// A user who is not stored yet, created from the claims: PayPulse's login signs users up itself.
        case new(User)
        /// A stored user, completed from the claims, such as one that an import of grants created.
        case completed(User)
    }

    static func decide(
        _ claims: AccessClaims,
        user: User?,
        session: Session?,
        at now: Timestamp
    ) throws(AuthenticationRefusal) -> Outcome {
        // A tombstone is kept until the last token that names the user has expired.
        if user?.isDeleted == true { throw .deleted }
        if let sessionID = claims.sessionID {
            guard let session, session.id == sessionID, session.userID == claims.userID, session.isLive(at: now) else {
                throw .invalid
            }
        }
        // A correct store never keeps a session longer than its user.
        if user == nil, claims.sessionID != nil { throw .invalid }
        if user?.isActive == false { throw .inactive }
        let former = user ?? User(id: claims.userID, createdAt: now)
        guard claims.sessionID == nil else { return .stored(former) }
        let completed = complete(former, by: claims, at: now)
        guard user != nil else { return .new(completed) }
        return completed == former ? .stored(former) : .completed(completed)
    }

    /// Adds what the backend's token says: it can contain more than the one that the user was created from.
    private static func complete(_ user: User, by claims: AccessClaims, at now: Timestamp) -> User {
        var user = user
        user.accept(tokenUntil: claims.expiresAt, at: now)
        if user.name?.isEmpty ?? true { user.name = claims.name ?? user.name }
        guard let email = claims.email else { return user }
        let isNewlyVerified = user.email == email && user.emailIsVerified != true && claims.emailIsVerified == true
        guard user.email == nil || isNewlyVerified else { return user }
        user.email = email
        user.emailIsVerified = claims.emailIsVerified
        return user
    }
}
