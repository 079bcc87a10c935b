internal import Base
internal import Crypto
internal import HTTPServer
internal import Storage

/// Authenticates callers by their access tokens.
struct Authenticator: Sendable {
    let store: any AccountStore
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
        do throws(TokenRefusal) {
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
        if case .stored(let user) = caller.outcome { return user }
        let now = time.now
        return try await store.transact { try caller.storeUser(in: $0, at: now) }
    }
}
