import Base
import GoogleOAuth
import Storage

/// Compares the account of a grant's first refresh with the account that the app proved to be its user's.
///
/// An app brings an access token, whose account Google names, and a refresh token, whose account cannot be looked up.
/// If an app kept a refresh token from before its user switched accounts, one user would get the mail of another.
extension Google {
    /// Returns the answer as it counts for the grant.
    ///
    /// If the answer does not have an ID token, the account is looked up once at Google, unless `mayLookUp` is `false`.
    /// An answer whose account stays unknown is not vended, but its rotated refresh token is kept.
    func checkAccount(
        of answer: ParsedRefreshResponse,
        for grant: Grant,
        mayLookUp: Bool
    ) async -> ParsedRefreshResponse {
        guard case .granted(let tokens) = answer.verdict, let expected = grant.owner.googleUserID else { return answer }
        var account = tokens.account
        if account == nil, mayLookUp {
            do throws(LookupError) {
                account = try await userInfo(accessToken: tokens.accessToken).googleUserID
            } catch {
                // It stays unknown.
            }
        }
        var result = answer
        switch account {
        case expected: break
        case nil:
            result.verdict = .flawed(code: GrantReason.accountUnchecked.rawValue, rotated: tokens.rotated)
            result.text = "the account of the new access token could not be looked up"
        default:
            result.verdict = .failed(.signInRequired(code: GrantReason.accountMismatch.rawValue))
            result.text = "the refresh token belongs to another Google account than the access token that came with it"
        }
        return result
    }
}

extension Grant {
    private static let identityScopes: Set<Substring> = [
        "openid", "email", "profile", "https://www.googleapis.com/auth/userinfo.email",
        "https://www.googleapis.com/auth/userinfo.profile",
    ]

    /// `true` until a refresh with the grant's refresh token has succeeded, if the account is known and can be looked
    /// up.
    ///
    /// Google does not name the account of an access token without an identity scope, so that the check would never
    /// end. An import can store such a grant, and the account is then the operator's statement.
    var needsAccountCheck: Bool {
        !isProven && owner.googleUserID != nil && !Self.identityScopes.isDisjoint(with: scope.split(separator: " "))
    }
}
