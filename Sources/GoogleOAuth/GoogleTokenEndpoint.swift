import Base
package import Crypto

/// The endpoints that the engine calls: Google's, or fake ones in tests.
///
/// The engine parses the responses to refreshes later, in batches.
package protocol GoogleTokenEndpoint: Sendable {
    /// Sends refresh requests, and returns for each one the closure that cancels it.
    func refresh(_ submissions: [RefreshSubmission]) -> [@Sendable () -> Void]

    /// Revokes a grant by one of its tokens.
    ///
    /// `mayStillSend` is called immediately before the request is sent. If it returns `false`, nothing is sent. It
    /// blocks every other request, so it must return at once.
    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse

    /// Returns the account that an access token belongs to.
    func userInfo(accessToken: Secret) async throws(LookupError) -> UserInfo
}

/// The outcome of a request to revoke a grant.
package enum RevocationResponse: Sendable, Hashable {
    /// The grant is revoked, or was before.
    case done
    case failed(LookupError)
    /// The worker did not send the request.
    case notSent(code: String)
}
