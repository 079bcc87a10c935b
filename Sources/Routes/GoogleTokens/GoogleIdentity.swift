internal import GoogleOAuth
internal import Storage

/// The owner of a Google access token, and the client it was issued for.
struct GoogleIdentity: Hashable, Sendable {
    let googleUserID: String
    let email: String
    let name: String?
    let picture: String?
    /// The Workspace domain, for whose addresses Google is the authority.
    let hostedDomain: String?
    let clientID: String
    let scope: String?
    let lifetime: Duration?

    /// Combines both of Google's responses, or returns `nil` if the token must not be trusted.
    init?(_ user: UserInfo, token: TokenInfo, clients: AcceptedClients) {
        guard clients.areTargets(of: token) else { return nil }
        if let owner = token.googleUserID, owner != user.googleUserID { return nil }
        guard let email = Self.verifiedEmail(of: user, token: token) else { return nil }
        if token.lifetime == .zero { return nil }
        googleUserID = user.googleUserID
        self.email = email
        name = user.name?.ifNotEmpty
        picture = user.picture?.ifNotEmpty
        hostedDomain = user.hostedDomain?.ifNotEmpty
        clientID = token.client
        scope = token.scope?.split(separator: " ").joined(separator: " ").ifNotEmpty
        lifetime = token.lifetime
    }

    private static func verifiedEmail(of user: UserInfo, token: TokenInfo) -> String? {
        guard user.emailIsVerified, token.emailIsVerified != false else { return nil }
        return user.email?.ifNotEmpty
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

/// The client ids whose Google tokens are accepted as proof of who the user is.
///
/// A token that was issued to another app proves only that its user trusts that app. If it were accepted, the operator
/// of any app could sign in to this worker as its users
/// (https://datatracker.ietf.org/doc/html/rfc6749#section-10.16).
struct AcceptedClients: Sendable {
    let ids: [String]
    /// The server's client: a token that the app got can be meant for its server.
    let serverID: String?

    func areTargets(of token: TokenInfo) -> Bool {
        guard ids.contains(token.client) else { return false }
        return ids.contains(token.audience) || token.audience == serverID
    }
}

extension AppRoutes.Dependencies {
    /// The clients whose tokens the worker accepts now.
    var acceptedClients: AcceptedClients { AcceptedClients(ids: clientIDs, serverID: exchanges?.client()?.id) }
}

extension TokenInfo {
    /// The client that can refresh the token: the authorized party. The audience is the one it was issued for.
    fileprivate var client: String { authorizedParty ?? audience }
}

extension String {
    fileprivate var ifNotEmpty: String? { isEmpty ? nil : self }
}
