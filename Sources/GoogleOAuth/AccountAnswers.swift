private import Clocks
package import JSON

/// Whom an access token belongs to, as userinfo says.
package struct UserInfo: Hashable, Sendable {
    package var googleUserID: String
    package var email: String?
    package var emailIsVerified: Bool
    package var name: String?
    package var picture: String?
    /// The Workspace domain, where Google is the authority for the e-mail address.
    package var hostedDomain: String?

    /// Reads both spellings: version 2 says `id` and `verified_email`, OpenID Connect `sub` and `email_verified`.
    package init?(_ body: JSONValue) {
        guard let id = (body["sub"] ?? body["id"])?.string, (1...255).contains(id.utf8.count) else { return nil }
        googleUserID = id
        email = body["email"]?.string
        emailIsVerified = (body["email_verified"] ?? body["verified_email"])?.saysTrue ?? false
        name = body["name"]?.string
        picture = body["picture"]?.string
        hostedDomain = body["hd"]?.string
    }
}

/// Whom an access token was issued to, for what and until when, as tokeninfo says.
package struct TokenInfo: Hashable, Sendable {
    package var audience: String
    package var authorizedParty: String?
    package var googleUserID: String?
    package var scope: String?
    package var lifetime: Duration?
    package var email: String?
    package var emailIsVerified: Bool?

    /// Reads both spellings: version 3 says `aud`, `azp`, `sub` and puts numbers into strings; version 2 says `audience`,
    /// `issued_to`, `user_id`.
    package init?(_ body: JSONValue) {
        guard let audience = (body["aud"] ?? body["audience"])?.string, !audience.isEmpty else { return nil }
        self.audience = audience
        authorizedParty = (body["azp"] ?? body["issued_to"])?.string
        googleUserID = (body["sub"] ?? body["user_id"])?.string
        scope = body["scope"]?.string
        let seconds = body["expires_in"].flatMap { $0.integer ?? $0.string.flatMap { Int64($0) } }
        lifetime = seconds.map { .seconds($0.clamped(to: 0...34_560_000)) }
        email = body["email"]?.string
        emailIsVerified = (body["email_verified"] ?? body["verified_email"])?.saysTrue
    }
}

extension JSONValue {
    /// A truth value, or the word for it in a string, as tokeninfo writes it.
    fileprivate var saysTrue: Bool { bool ?? (string == "true") }
}

/// Why a question about an account got no useful answer.
package enum LookupFailure: Error, Hashable, Sendable {
    /// The token is not, or no longer, good.
    case refused
    /// Google could not be reached or understood; asking again may help.
    case unavailable(code: String)
}
