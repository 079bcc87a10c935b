internal import Base
internal import Crypto
internal import GoogleOAuth
internal import Storage

extension RouteDependencies {
    private typealias Lookup = Result<(user: UserInfo?, token: TokenInfo?), LookupError>

    /// Returns the owner of an access token, by two requests to Google at once, under one deadline.
    func identity(of accessToken: Secret) async throws(APIError) -> GoogleIdentity {
        do throws(LookupError) {
            let (user, token) = try await lookUp(accessToken).get()
            guard let user, let token,
                let identity = GoogleIdentity(
                    user,
                    token,
                    clientIDs: clientIDs,
                    serverClientID: exchanges?.client()?.id
                )
            else { throw .refused }
            return identity
        } catch {
            throw error == .refused ? .refusedByGoogle : .googleUnreachable
        }
    }

    private func lookUp(_ accessToken: Secret) async -> Lookup {
        await withTaskGroup(of: Lookup.self) { group in
            group.addTask {
                do throws(LookupError) {
                    return .success((try await google.userInfo(accessToken: accessToken), nil))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do throws(LookupError) {
                    return .success((nil, try await google.tokenInfo(accessToken: accessToken)))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do {
                    try await time.sleep(for: googleDeadline)
                } catch {
                    // Both answers have arrived, so this result is not used.
                }
                return .failure(.unavailable(code: "timeout"))
            }
            // One refusal, or one request without an answer, is enough to decide. The other is cancelled.
            defer { group.cancelAll() }
            var user: UserInfo?
            var token: TokenInfo?
            for await result in group {
                guard case .success(let found) = result else { return result }
                user = user ?? found.user
                token = token ?? found.token
                if user != nil, token != nil { break }
            }
            return .success((user, token))
        }
    }
}

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
    ///
    /// A token that was issued to another app proves only that its user trusts that app. If it were accepted, the
    /// operator of any app could sign in to this worker as its users
    /// (https://datatracker.ietf.org/doc/html/rfc6749#section-10.16).
    ///
    /// A token that the app got can be meant for its server, so the audience can be the server's client.
    init?(_ user: UserInfo, _ token: TokenInfo, clientIDs: [String], serverClientID: String? = nil) {
        guard clientIDs.contains(token.authorizedParty ?? token.audience),
            clientIDs.contains(token.audience) || token.audience == serverClientID
        else { return nil }
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
        // The authorized party can refresh the token. The audience is the client that the token was issued for.
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

/// The rule that a Google token proves the identity of its user only if the app obtained it.
extension StoreTransaction {
    /// Throws if the worker obtained the token by a refresh: a service that got the token could sign in with it.
    func refuse(_ accessToken: Secret, issuedTo owner: Grant.Owner, at now: Timestamp) throws {
        try refuse(accessToken, among: try issuedTokens(toAccount: owner, at: now))
    }

    /// Throws if the token comes from the user's own grant, which might name another account or none.
    func refuse(_ accessToken: Secret, issuedToUser userID: String) throws {
        if let grant = try grant(ofUser: userID) { try refuse(accessToken, among: [grant.issuedTokens]) }
    }

    private func refuse(_ accessToken: Secret, among issued: [IssuedTokens]) throws {
        let digest = IssuedTokens.digest(of: accessToken)
        if issued.contains(where: { $0.contains(digest) }) { throw APIError.refusedByGoogle }
    }
}
