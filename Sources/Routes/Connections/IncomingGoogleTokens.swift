internal import Base
internal import Crypto
internal import GoogleOAuth
internal import HTTPServer
internal import Scheduler
internal import Storage

/// The tokens that the app posts after its user has consented at Google.
///
///     {"access_token": "ya29.…", "refresh_token": "1//…", "expires_in": 3599, "scope": ["openid", "…"]}
///
/// The optional e-mail address is validated and not used: the token's owner comes from Google.
struct IncomingGoogleTokens: Sendable {
    var accessToken: Secret
    var refreshToken: Secret?
    /// The code that the worker exchanges for the refresh token, if the app brings one instead of the token.
    var serverAuthCode: Secret?
    /// The remaining lifetime of the refresh token, or `nil` if the app does not know one.
    var refreshTokenLifetime: Duration?
    var lifetime: Duration?
    var scope: String?
    /// The connection that the tokens are for.
    var target = ConnectionTarget.default(maySwitch: true)

    /// The lifetime of Google's access tokens, for a token of unknown lifetime.
    private static let usualLifetime: Duration = .seconds(3600)
    /// Google documents at most 256 bytes, and asks for room for more.
    private static let maximumCode = 2048
    private static let maximumEmail = 255

    /// Reads a request of a route that can name a connection, or of one that means the default connection.
    init(_ request: ServerRequest, namesConnection: Bool = false) throws(AppError) {
        let body = try RequestBody(request, allowsForm: true)
        let accessToken = try body.required("access_token")
        refreshToken = try body.token("refresh_token")
        serverAuthCode = try body.token("server_auth_code", limit: Self.maximumCode)
        guard refreshToken == nil || serverAuthCode == nil else {
            throw .invalidField("refresh_token", mustBe: "left out beside server_auth_code")
        }
        let refreshTokenLifetime = try body.seconds("refresh_token_expires_in")
        // Zero means that the token does not expire, as in other servers' responses.
        self.refreshTokenLifetime = refreshTokenLifetime == .zero ? nil : refreshTokenLifetime
        lifetime = try body.seconds("expires_in")
        scope = try body.scopes("scope")
        // Not used, and checked as the description says, so that a mistake of the app shows.
        if let email = try body.text("email"), email.unicodeScalars.count > Self.maximumEmail {
            throw .invalidField("email", mustBe: "shorter")
        }
        // A malformed token is refused without asking Google.
        guard Token.isWellFormed(accessToken) else { throw .refusedByGoogle }
        self.accessToken = Secret(accessToken)
        if namesConnection { target = try Self.target(in: body) }
    }

    private static func target(in body: RequestBody) throws(AppError) -> ConnectionTarget {
        let connection = try body.text("connection") ?? ""
        let refusesSwitch: Bool
        switch try body.text("on_switch") {
        case nil, "switch": refusesSwitch = false
        case "refuse": refusesSwitch = true
        default: throw .invalidField("on_switch", mustBe: "switch or refuse")
        }
        guard let target = ConnectionTarget(connection, refusesSwitch: refusesSwitch) else {
            throw .invalidField("connection", mustBe: "new, or the id of a connection")
        }
        return target
    }

    /// The end of the access token. What Google says comes before what the app says.
    func accessTokenEnd(_ identity: GoogleIdentity, at now: Timestamp) -> Timestamp {
        now + (identity.lifetime ?? lifetime ?? Self.usualLifetime)
    }

    /// The scopes of the access token. What Google says comes before what the app says.
    func grantedScope(_ identity: GoogleIdentity) -> String? { identity.scope ?? scope }
}
