package import Crypto
package import GoogleOAuth

/// Google's information about an access token; tests use a fake.
package protocol GoogleLookups: Sendable {
    /// Returns the user of the token.
    func userInfo(accessToken: Secret) async throws(AccountLookupFailure) -> UserInfo
    /// Returns the client of the token.
    func tokenInfo(accessToken: Secret) async throws(AccountLookupFailure) -> TokenInfo
}

extension GoogleOAuthAPI: GoogleLookups {}
