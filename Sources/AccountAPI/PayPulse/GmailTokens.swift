internal import GoogleOAuth
internal import HTTPServer
internal import Secrets

/// What the app posts after its user has consented at Google.
///
/// The e-mail address that it may name is checked for its kind and not used: Google says whose the token is.
struct GmailTokens: Sendable {
    var accessToken: Secret
    var refreshToken: Secret?
    /// When the refresh token dies of itself, from now; nothing when the app does not know.
    var refreshTokenLifetime: Duration?
    var lifetime: Duration?
    var scope: String?

    init(_ request: ServerRequest) throws {
        let body = try RequestBody.jsonOrForm(request)
        let accessToken = try body.required("access_token")
        refreshToken = try body.token("refresh_token")
        let refreshTokenLifetime = try body.seconds("refresh_token_expires_in")
        // Zero means without an end, as in other servers' answers.
        self.refreshTokenLifetime = refreshTokenLifetime == .zero ? nil : refreshTokenLifetime
        lifetime = try body.seconds("expires_in")
        scope = try body.scopes("scope")
        _ = try body.text("email")
        // A malformed token is refused without asking Google.
        guard Token.isWellFormed(accessToken) else { throw IdentityFailure.refused }
        self.accessToken = Secret(accessToken)
    }
}
