internal import GoogleOAuth
internal import Storage

/// The owner of a Google access token, and the client it was issued for.
struct GoogleIdentity: Hashable, Sendable {
    let googleUserID: String
    let email: String
    let name: String?
    let picture: String?
    /// The Workspace domain; for its addresses Google is the authority.
    let hostedDomain: String?
    let clientID: String
    let scope: String?
    let lifetime: Duration?

    /// Combines both of Google's responses; `nil` if the token must not be trusted.
    ///
    /// A token that was issued to another app proves only that its user trusts that app. If it were accepted, the
    /// operator of any app could sign in to this worker as its users
    /// (https://datatracker.ietf.org/doc/html/rfc6749#section-10.16).
    init?(_ user: UserInfo, _ token: TokenInfo, clientIDs: [String]) {
        let tokenClientIDs = [token.audience, token.authorizedParty].compactMap(\.self)
        guard tokenClientIDs.allSatisfy(clientIDs.contains) else { return nil }
        guard token.googleUserID == nil || token.googleUserID == user.googleUserID else { return nil }
        guard let email = user.email, !email.isEmpty, user.emailIsVerified, token.emailIsVerified != false else {
            return nil
        }
        guard token.lifetime != .zero else { return nil }
        googleUserID = user.googleUserID
        self.email = email
        name = user.name.flatMap { $0.isEmpty ? nil : $0 }
        picture = user.picture.flatMap { $0.isEmpty ? nil : $0 }
        hostedDomain = user.hostedDomain.flatMap { $0.isEmpty ? nil : $0 }
        // The authorized party may refresh the token; the audience is the client that the token was issued for.
        clientID = token.authorizedParty ?? token.audience
        scope = token.scope.map { $0.split(separator: " ").joined(separator: " ") }.flatMap { $0.isEmpty ? nil : $0 }
        lifetime = token.lifetime
    }

    var owner: Grant.Owner {
        Grant.Owner(googleUserID: googleUserID, email: email, name: name, emailIsVerified: true)
    }

    /// `true` if Google itself decides who owns the address.
    ///
    /// For any other address Google only knows a former owner
    /// (https://developers.google.com/identity/gsi/web/guides/verify-google-id-token).
    var googleIsAuthorityForEmail: Bool {
        if hostedDomain != nil { return true }
        let domain = email.lowercased().split(separator: "@", omittingEmptySubsequences: false).last
        return domain == "gmail.com" || domain == "googlemail.com"
    }
}
