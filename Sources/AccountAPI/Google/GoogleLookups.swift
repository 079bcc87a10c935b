package import GoogleOAuth
package import Secrets

/// What Google says of an access token; tests put a fake in its place.
package protocol GoogleLookups: Sendable {
    /// Whom the token belongs to.
    func userInfo(accessToken: Secret) async throws(LookupFailure) -> UserInfo
    /// Whom the token was issued to.
    func tokenInfo(accessToken: Secret) async throws(LookupFailure) -> TokenInfo
}

extension GoogleAccounts: GoogleLookups {}
