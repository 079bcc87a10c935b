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

extension JSONValue {
    /// `true` for a JSON `true`, and for the string "true" that tokeninfo sends.
    var isTrue: Bool { bool ?? (string == "true") }
}
