internal import Base
package import Crypto
package import GoogleOAuth
internal import Storage

/// The reason why the owner of an access token is unknown.
enum IdentityFailure: Error, Hashable, Sendable {
    /// The token is invalid, belongs to another app, or its user's address is not verified; all get the same response.
    case refused
    /// Google could not be reached; another try may help.
    case unavailable(code: String)
}

/// Sends both requests about an access token to Google at once, under one deadline.
struct IdentityCheck: Sendable {
    let google: any GoogleLookups
    let clientIDs: [String]
    let deadline: Duration
    let time: any TimeSource

    private enum LookupResult: Sendable {
        case user(UserInfo)
        case token(TokenInfo)
        case failure(AccountLookupFailure)
    }

    func identity(of accessToken: Secret) async throws(IdentityFailure) -> GoogleIdentity {
        let lookups = await lookUp(accessToken)
        if lookups.failures.contains(.refused) { throw .refused }
        guard let user = lookups.user, let token = lookups.token else {
            guard case .unavailable(let code) = lookups.failures.first else { throw .unavailable(code: "timeout") }
            throw .unavailable(code: code)
        }
        guard let identity = GoogleIdentity(user, token, clientIDs: clientIDs) else { throw .refused }
        return identity
    }

    private struct Lookups {
        var user: UserInfo?
        var token: TokenInfo?
        var failures: [AccountLookupFailure] = []
    }

    private func lookUp(_ accessToken: Secret) async -> Lookups {
        await withTaskGroup(of: LookupResult.self) { group in
            group.addTask {
                do throws(AccountLookupFailure) {
                    return .user(try await google.userInfo(accessToken: accessToken))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do throws(AccountLookupFailure) {
                    return .token(try await google.tokenInfo(accessToken: accessToken))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do {
                    try await time.sleep(for: deadline)
                } catch {
                    // Both answers have arrived, so this result is not used.
                }
                return .failure(.unavailable(code: "timeout"))
            }
            var lookups = Lookups()
            // One refusal, or one request without an answer, is enough to decide; the other is cancelled.
            while lookups.user == nil || lookups.token == nil, lookups.failures.isEmpty {
                switch await group.next() {
                case .user(let user): lookups.user = user
                case .token(let token): lookups.token = token
                case .failure(let failure): lookups.failures.append(failure)
                case nil: return lookups
                }
            }
            group.cancelAll()
            return lookups
        }
    }
}

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

/// Google's information about an access token; tests use a fake.
package protocol GoogleLookups: Sendable {
    /// Returns the user of the token.
    func userInfo(accessToken: Secret) async throws(AccountLookupFailure) -> UserInfo
    /// Returns the client of the token.
    func tokenInfo(accessToken: Secret) async throws(AccountLookupFailure) -> TokenInfo
}

extension GoogleOAuthAPI: GoogleLookups {}

/// The rule that a Google token proves the identity of its user only if the app obtained it.
enum ProofOfIdentity {
    /// Throws if the worker obtained the token by a refresh: a service that got the token could sign in with it.
    static func check(
        _ accessToken: Secret,
        of identity: GoogleIdentity,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws {
        try check(accessToken, against: try transaction.issuedTokens(toAccount: identity.owner, at: now))
    }

    /// Throws if the token comes from the user's own grant, which may name another account or none.
    static func check(_ accessToken: Secret, ofUser userID: String, in transaction: any StoreTransaction) throws {
        guard let grant = try transaction.grant(ofUser: userID) else { return }
        try check(accessToken, against: [grant.issuedTokens])
    }

    private static func check(_ accessToken: Secret, against issued: [IssuedTokens]) throws {
        let digest = IssuedTokens.digest(of: accessToken)
        if issued.contains(where: { $0.contains(digest) }) { throw IdentityFailure.refused }
    }
}
