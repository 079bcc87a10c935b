package import Base
package import Crypto
package import GoogleOAuth
package import Storage

/// Verifies the app's own tokens: those of the shared secret (HS256), and those that a login has signed with a key of
/// its published key set (RS256, ES256).
///
///     let caller = try await tokens.caller(presenting: "eyJhbGciOi…")
///     caller.userID  // "42"
package struct AppTokens: Sendable {
    package static let usualUserClaim = "sub"

    /// `nil` without a shared secret: then the worker issues no sessions.
    let signer: TokenSigner?
    let keySets: [KeySetCache]
    /// The required `iss`, if any.
    let issuer: String?
    /// The required `aud`, if any.
    let audience: String?
    let userClaim: String
    let store: any Store
    let time: any TimeSource

    package init(
        signer: TokenSigner?,
        keySets: [KeySetCache] = [],
        issuer: String? = nil,
        audience: String? = nil,
        userClaim: String = AppTokens.usualUserClaim,
        store: any Store,
        time: any TimeSource
    ) {
        self.signer = signer
        self.keySets = keySets
        self.issuer = issuer
        self.audience = audience
        self.userClaim = userClaim
        self.store = store
        self.time = time
    }

    /// Returns the user of an access token, or throws an ``AppError`` or an error of the store.
    func caller(presenting token: String) async throws -> AuthenticatedCaller {
        try await caller(with: try await claims(of: token))
    }

    func caller(with claims: AccessClaims) async throws -> AuthenticatedCaller {
        var session: Session?
        if let id = claims.sessionID { session = try await store.session(id, ofUser: claims.userID) }
        let stored = try await store.user(claims.userID)
        let user = try claims.user(stored: stored, session: session, at: time.now)
        return AuthenticatedCaller(claims: claims, storedUser: user == stored ? user : nil)
    }

    /// Returns the claims of an access token that is signed and valid now. The header only chooses between the shared
    /// secret and the key sets. There, the algorithm is that of the key.
    func claims(of text: String) async throws(AppError) -> AccessClaims {
        if !keySets.isEmpty, let token = Self.loginToken(text) {
            try await verify(token)
            try Self.translated { () throws(CryptoError) in try token.checkUse(at: time.now) }
            try checkTarget(token.claims)
            return try AccessClaims(token.claims, ofLoginWith: userClaim)
        }
        guard let signer else { throw .invalidToken }
        let claims = try Self.translated { () throws(CryptoError) in try signer.claims(of: text, at: time.now) }
        let access = try AccessClaims(claims, userClaim: userClaim)
        // The worker's own tokens name a session that it must have stored, and no issuer.
        if access.sessionID == nil { try checkTarget(claims) }
        return access
    }

    /// Returns the claims of a refresh token, even if it has expired, or `nil` for any other token.
    ///
    /// Its session decides whether it is valid: the response might have been lost on the token's last day, or a clock
    /// that was ahead might have made the token.
    func refreshClaims(of token: String) -> RefreshClaims? {
        do {
            guard let claims = try signer?.signedClaims(of: token) else { return nil }
            if claims["sid"] == nil { try checkTarget(claims) }
            return RefreshClaims(
                claims,
                of: token,
                userClaim: userClaim,
                isTimely: TokenSigner.areTimely(claims, at: time.now)
            )
        } catch {
            return nil
        }
    }

    private static func loginToken(_ text: String) -> SignedToken? {
        do throws(CryptoError) {
            return try SignedToken(text)
        } catch {
            return nil
        }
    }

    /// Throws unless a key with the token's `kid` has signed it.
    private func verify(_ token: SignedToken) async throws(AppError) {
        guard let id = token.keyID else { throw .invalidToken }
        // A token of one login waits neither for the keys of another, nor for newer ones.
        for keySet in keySets {
            if let key = await keySet.cachedKey(id: id), token.verifies(with: key) { return }
        }
        var withoutKey = 0
        var wait: Duration?
        for await result in keys(id: id) {
            switch result {
            case .success(let key):
                if let key, token.verifies(with: key) { return }
                withoutKey += 1
            case .failure(let error): wait = min(wait ?? error.retryAfter, error.retryAfter)
            }
        }
        // While a key set cannot be fetched, a token that it might have signed is not refused for good. A caller that
        // is cancelled stops listening before all have answered.
        guard withoutKey == keySets.count else { throw .keysUnavailable(retryAfter: wait ?? .seconds(1)) }
        throw .invalidToken
    }

    private typealias FetchedKey = Result<PublicKey?, KeySetCache.Unavailable>

    /// Fetches all key sets at once, and returns what each has under this id as it arrives. A task group would wait for
    /// the slowest server, even when another has already sent the key.
    private func keys(id: String) -> some AsyncSequence<FetchedKey, Never> {
        let (results, continuation) = AsyncStream.makeStream(of: FetchedKey.self)
        for keySet in keySets {
            Task {
                do throws(KeySetCache.Unavailable) {
                    continuation.yield(.success(try await keySet.key(id: id).key))
                } catch {
                    continuation.yield(.failure(error))
                }
            }
        }
        return results.prefix(keySets.count)
    }

    /// Throws if the token is of another issuer, or meant for another audience. Access tokens of Amazon Cognito have
    /// `client_id` and no `aud`.
    private func checkTarget(_ claims: JSONValue) throws(AppError) {
        if let issuer, claims["iss"]?.string != issuer { throw .foreignToken }
        guard let audience else { return }
        switch claims["aud"] ?? claims["client_id"] {
        case .string(audience): return
        case .array(let audiences) where audiences.contains(.string(audience)): return
        default: throw .foreignToken
        }
    }

    private static func translated<Result>(_ body: () throws(CryptoError) -> Result) throws(AppError) -> Result {
        do throws(CryptoError) {
            return try body()
        } catch .expired {
            throw .expiredToken
        } catch {
            throw .invalidToken
        }
    }
}
