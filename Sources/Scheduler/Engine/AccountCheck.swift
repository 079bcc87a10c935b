import GoogleOAuth
import Storage
private import Synchronization

/// Compares the account of a grant's first refresh with the account that the app proved to be its user's.
///
/// An app brings an access token, whose account Google names, and a refresh token, whose account cannot be looked up.
/// If an app kept a refresh token from before its user switched accounts, one user would get the mail of another.
struct AccountCheck: Sendable {
    let endpoint: any TokenEndpoint

    private static let identityScopes: Set<Substring> = [
        "openid", "email", "profile", "https://www.googleapis.com/auth/userinfo.email",
        "https://www.googleapis.com/auth/userinfo.profile",
    ]

    /// `true` until a refresh with the grant's refresh token has succeeded, if the account is known and can be looked
    /// up.
    ///
    /// Google does not name the account of an access token without an identity scope, so that the check would never
    /// end. An import may store such a grant, and the account is then the operator's statement.
    static func isNeeded(for grant: Grant) -> Bool {
        !grant.isProven && grant.owner.googleUserID != nil
            && !identityScopes.isDisjoint(with: grant.scope.split(separator: " "))
    }

    /// Returns the answer as it counts for the grant.
    ///
    /// If the answer does not have an ID token, the account is looked up once at Google, unless `mayLookUp` is `false`.
    /// An answer whose account stays unknown is not vended, but its rotated refresh token is kept.
    func checked(_ answer: ParsedRefreshResponse, for grant: Grant, mayLookUp: Bool) async -> ParsedRefreshResponse {
        guard case .granted(let tokens) = answer.verdict, let expected = grant.owner.googleUserID else { return answer }
        let account: String?
        if let accountInAnswer = tokens.account {
            account = accountInAnswer
        } else if mayLookUp {
            do throws(AccountLookupFailure) {
                account = try await endpoint.userInfo(accessToken: tokens.accessToken).googleUserID
            } catch {
                account = nil
            }
        } else {
            account = nil
        }
        var result = answer
        switch account {
        case expected: break
        case nil:
            result.verdict = .flawed(code: GrantReason.accountUnchecked.rawValue, rotated: tokens.rotated)
            result.text = "the account of the new access token could not be looked up"
        default:
            result.verdict = .signInRequired(code: GrantReason.accountMismatch.rawValue)
            result.text = "the refresh token belongs to another Google account than the access token that came with it"
        }
        return result
    }
}

/// The look-up of one answer's account, which can be cancelled before and after it has begun.
///
/// It always ends by passing the answer on: a cancellation only ends the wait for Google.
final class AccountLookup: Sendable {
    private let state = Mutex<(task: Task<Void, Never>?, isCancelled: Bool)>((nil, false))

    func run(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            let task = Task { await body() }
            if state.isCancelled { task.cancel() }
            state.task = task
        }
    }

    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            state.task?.cancel()
        }
    }
}
