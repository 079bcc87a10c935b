internal import Base
internal import Crypto
internal import GoogleOAuth

extension GoogleTokenCheck {
    private static let issuers = ["accounts.google.com", "https://accounts.google.com"]

    /// Returns the owner of an ID token, by Google's keys
    /// (https://developers.google.com/identity/sign-in/ios/backend-auth).
    ///
    /// The app passes the nonce that it gave to Google's SDK, if any.
    func owner(ofIDToken text: String, nonce: String?) async throws(AppError) -> ProvenOwner {
        let token: SignedToken
        do throws(CryptoError) {
            token = try SignedToken(text)
            try token.checkUse(at: dependencies.time.now)
        } catch {
            throw .refusedIDToken
        }
        guard let key = try await googleKey(of: token), token.verifies(with: key) else { throw .refusedIDToken }
        let claims = token.claims
        guard Self.isFromGoogle(claims), Self.repeats(nonce, in: claims) else { throw .refusedIDToken }
        guard let identity = identity(of: claims), let expiresAt = claims["exp"]?.timestamp else {
            throw .refusedIDToken
        }
        return ProvenOwner(identity: identity, proof: .idToken(digest: token.digest, expiresAt: expiresAt))
    }

    private func googleKey(of token: SignedToken) async throws(AppError) -> PublicKey? {
        guard let id = token.keyID else { return nil }
        do throws(KeySetCache.Unavailable) {
            return try await dependencies.googleKeys.key(id: id).key
        } catch {
            throw .googleUnreachable
        }
    }

    private static func isFromGoogle(_ claims: JSONValue) -> Bool {
        guard let issuer = claims["iss"]?.string else { return false }
        return issuers.contains(issuer)
    }

    private static func repeats(_ nonce: String?, in claims: JSONValue) -> Bool {
        guard let nonce else { return true }
        return claims["nonce"]?.string == nonce
    }

    private func identity(of claims: JSONValue) -> GoogleIdentity? {
        guard let user = UserInfo(claims), let token = TokenInfo(claims) else { return nil }
        return GoogleIdentity(user, token: token, clients: dependencies.acceptedClients)
    }
}
