internal import Crypto
internal import GoogleOAuth
internal import HTTPServer

/// The tokens that the app posts after its user has consented at Google.
///
/// The optional e-mail address is validated and not used: the token's owner comes from Google.
struct GmailTokens: Sendable {
    var accessToken: Secret
    var refreshToken: Secret?
    /// The remaining lifetime of the refresh token; `nil` if the app does not know one.
    var refreshTokenLifetime: Duration?
    var lifetime: Duration?
    var scope: String?

    init(_ request: ServerRequest) throws {
        let body = try RequestBody.jsonOrForm(request)
        let accessToken = try body.required("access_token")
        refreshToken = try body.token("refresh_token")
        let refreshTokenLifetime = try body.seconds("refresh_token_expires_in")
        // Zero means that the token does not expire, as in other servers' responses.
        self.refreshTokenLifetime = refreshTokenLifetime == .zero ? nil : refreshTokenLifetime
        lifetime = try body.seconds("expires_in")
        scope = try body.scopes("scope")
        _ = try body.text("email")
        // A malformed token is refused without asking Google.
        guard Token.isWellFormed(accessToken) else { throw IdentityFailure.refused }
        self.accessToken = Secret(accessToken)
    }
}
