package import Base

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
