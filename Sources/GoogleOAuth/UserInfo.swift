package import Base

/// The account that an access token belongs to, from the userinfo endpoint.
package struct UserInfo: Hashable, Sendable {
    package var googleUserID: String
    package var email: String?
    package var emailIsVerified: Bool
    package var name: String?
    package var picture: String?
    /// The Workspace domain, if Google is authoritative for the e-mail address.
    package var hostedDomain: String?

    /// Reads both forms: version 2 uses `id` and `verified_email`, OpenID Connect `sub` and `email_verified`.
    package init?(_ body: JSONValue) {
        guard let id = (body["sub"] ?? body["id"])?.string, (1...255).contains(id.utf8.count) else { return nil }
        googleUserID = id
        email = body["email"]?.string
        emailIsVerified = (body["email_verified"] ?? body["verified_email"])?.isTrue ?? false
        name = body["name"]?.string
        picture = body["picture"]?.string
        hostedDomain = body["hd"]?.string
    }
}

/// The client, account, scopes and expiry of an access token, from the tokeninfo endpoint.
package struct TokenInfo: Hashable, Sendable {
    package var audience: String
    package var authorizedParty: String?
    package var googleUserID: String?
    package var scope: String?
    package var lifetime: Duration?
    package var emailIsVerified: Bool?

    /// Reads both forms: version 3 uses `aud`, `azp` and `sub`, and puts numbers into strings. Version 2 uses
    /// `audience`, `issued_to` and `user_id`.
    package init?(_ body: JSONValue) {
        guard let audience = (body["aud"] ?? body["audience"])?.string, !audience.isEmpty else { return nil }
        self.audience = audience
        authorizedParty = (body["azp"] ?? body["issued_to"])?.string
        googleUserID = (body["sub"] ?? body["user_id"])?.string
        scope = body["scope"]?.string
        let seconds = body["expires_in"].flatMap { $0.integer ?? $0.string.flatMap { Int64($0) } }
        lifetime = seconds.map { .seconds($0.clamped(to: 0...34_560_000)) }
        emailIsVerified = (body["email_verified"] ?? body["verified_email"])?.isTrue
    }
}

/// The reason why Google did not answer a question about an account, or for its keys.
package enum LookupError: Error, Hashable, Sendable {
    /// The token is invalid or has expired.
    case refused
    /// Google could not be reached, or its answer could not be read. A retry might help.
    case unavailable(code: String)

    /// The answer lacks what it must have.
    static let flawed = LookupError.unavailable(code: "flawed_answer")
}

extension JSONValue {
    /// `true` for a JSON `true`, and for the string "true" that tokeninfo sends.
    var isTrue: Bool { bool ?? (string == "true") }
}
