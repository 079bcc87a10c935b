internal import GoogleOAuth
internal import Store

/// Who stands behind an access token of Google's, and for which of our clients it was issued.
struct GoogleIdentity: Hashable, Sendable {
    let googleUserID: String
    let email: String
    let name: String?
    let picture: String?
    /// The Workspace domain, where Google is the authority for the address.
    let hostedDomain: String?
    let clientID: String
    let scope: String?
    let lifetime: Duration?

    /// Puts both of Google's answers together; `nil` when the token is not one that may be believed here.
    ///
    /// A token that was issued to another app proves only that its user trusts that app: were it accepted, whoever runs
    /// any app could sign in here as its users (https://datatracker.ietf.org/doc/html/rfc6749#section-10.16).
    init?(_ user: UserInfo, _ token: TokenInfo, clientIDs: [String]) {
        let parties = [token.audience, token.authorizedParty].compactMap(\.self)
        guard parties.allSatisfy(clientIDs.contains) else { return nil }
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
        // The party that a token was issued to is who may refresh it; the audience is whom it was issued for.
        clientID = token.authorizedParty ?? token.audience
        scope = token.scope.map { $0.split(separator: " ").joined(separator: " ") }.flatMap { $0.isEmpty ? nil : $0 }
        lifetime = token.lifetime
    }

    var owner: Grant.Owner {
        Grant.Owner(googleUserID: googleUserID, email: email, name: name, emailIsVerified: true)
    }

    /// Whether Google itself decides whose the address is; of any other address it only knows who had it once
    /// (https://developers.google.com/identity/gsi/web/guides/verify-google-id-token).
    var googleIsAuthorityForEmail: Bool {
        if hostedDomain != nil { return true }
        let domain = email.lowercased().split(separator: "@", omittingEmptySubsequences: false).last
        return domain == "gmail.com" || domain == "googlemail.com"
    }
}
