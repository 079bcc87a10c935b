import Base
import GoogleOAuth
import Storage
import Synchronization

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
