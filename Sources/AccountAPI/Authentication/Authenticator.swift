internal import Clocks
internal import HTTPServer
internal import JSON
internal import Secrets
internal import Store

/// A caller with a valid token, and the user as stored when the request came.
struct AuthenticatedCaller: Sendable {
    let claims: AccessClaims
    let outcome: AuthenticationRules.Outcome

    var userID: String { claims.userID }
}

/// Authenticates callers by their access tokens.
struct Authenticator: Sendable {
    let store: any AccountStore
    let signer: TokenSigner
    let time: any TimeSource

    /// Returns the caller of a request; throws an ``AuthenticationRefusal`` or an error of the store.
    func caller(of request: ServerRequest) async throws -> AuthenticatedCaller {
        try await caller(claiming: try claims(of: try request.bearerToken()))
    }

    /// Returns the caller that the claims name, after the token's signature and times were checked.
    func caller(claiming claims: JSONValue) async throws -> AuthenticatedCaller {
        let claims = try AccessClaims(claims)
        var session: Session?
        if let id = claims.sessionID { session = try await store.session(id) }
        let user = try await store.user(claims.userID)
        let outcome = try AuthenticationRules.decide(claims, user: user, session: session, at: time.now)
        return AuthenticatedCaller(claims: claims, outcome: outcome)
    }

    /// Returns the claims of one of the app's own tokens, whatever its type.
    func claims(of token: String) throws(AuthenticationRefusal) -> JSONValue {
        do throws(TokenRefusal) {
            return try signer.claims(of: token, at: time.now)
        } catch .expired {
            throw .expired
        } catch {
            throw .invalid
        }
    }

    /// Returns the claims of a refresh token, whatever its times; `nil` for any other token.
    ///
    /// Its session decides whether it is valid: the answer may have been lost on the token's last day, or a clock that
    /// was ahead may have made the token.
    func refreshClaims(of token: String) -> RefreshClaims? {
        do throws(TokenRefusal) {
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
        if case .known(let user) = caller.outcome { return user }
        let now = time.now
        return try await store.transact { try caller.settle(in: $0, at: now) }
    }
}

extension AuthenticatedCaller {
    /// Decides again from the data stored now, and stores what the claims add to the user.
    func settle(in transaction: any StoreTransaction, at now: Timestamp) throws -> User {
        let user = try transaction.user(userID)
        let session = try claims.sessionID.flatMap { try transaction.session($0) }
        switch try AuthenticationRules.decide(claims, user: user, session: session, at: now) {
        case .known(let user): return user
        case .new(let new):
            try transaction.insert(new)
            return new
        case .completed(let user):
            try transaction.update(user)
            return user
        }
    }
}
