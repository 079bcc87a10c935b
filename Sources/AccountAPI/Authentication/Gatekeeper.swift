internal import Clocks
internal import HTTPServer
internal import JSON
internal import Secrets
internal import Store

/// A caller whose token is good, and what was stored of the user when it came.
struct Caller: Sendable {
    let claims: AccessClaims
    let standing: Authentication.Standing

    var userID: String { claims.userID }
}

/// Lets callers in by their access tokens.
struct Gatekeeper: Sendable {
    let store: any AccountStore
    let signer: TokenSigner
    let time: any TimeSource

    /// The caller of a request; throws an ``AuthenticationRefusal`` or what the store throws.
    func caller(of request: ServerRequest) async throws -> Caller {
        try await caller(claiming: try claims(of: try BearerToken.read(request)))
    }

    /// The caller whom the claims of a token name, once its signature and times are known to be good.
    func caller(claiming claims: JSONValue) async throws -> Caller {
        let claims = try AccessClaims(claims)
        var session: Session?
        if let id = claims.sessionID { session = try await store.session(id) }
        let user = try await store.user(claims.userID)
        let standing = try Authentication.decide(claims, user: user, session: session, at: time.now)
        return Caller(claims: claims, standing: standing)
    }

    /// What a token of the app's own says, whatever kind it is of.
    func claims(of token: String) throws(AuthenticationRefusal) -> JSONValue {
        do throws(TokenRefusal) {
            return try signer.claims(of: token, at: time.now)
        } catch .expired {
            throw .expired
        } catch {
            throw .invalid
        }
    }

    /// What a refresh token says, whatever its times; `nil` for anything else.
    ///
    /// Its session knows whether it is good: the answer may have been lost on the token's last day, or a clock that was ahead
    /// has made it.
    func refreshClaims(of token: String) -> RefreshClaims? {
        do throws(TokenRefusal) {
            let claims = try signer.signedClaims(of: token)
            return RefreshClaims(claims, of: token, isTimely: TokenSigner.areTimely(claims, at: time.now))
        } catch {
            return nil
        }
    }
}

extension Gatekeeper {
    /// The user of a request, stored by the time this returns.
    func user(of request: ServerRequest) async throws -> User {
        let caller = try await caller(of: request)
        if case .known(let user) = caller.standing { return user }
        let now = time.now
        return try await store.transact { try caller.settle(in: $0, at: now) }
    }
}

extension Caller {
    /// Decides again by what is stored now, and stores what the claims tell of the user.
    func settle(in transaction: any StoreTransaction, at now: Timestamp) throws -> User {
        let user = try transaction.user(userID)
        let session = try claims.sessionID.flatMap { try transaction.session($0) }
        switch try Authentication.decide(claims, user: user, session: session, at: now) {
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
