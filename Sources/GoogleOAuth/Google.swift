package import Crypto

/// What the worker asks of Google: ``GoogleOAuthAPI`` sends it over HTTP, and tests replace it with a fake.
///
///     let google: any Google = GoogleOAuthAPI(http: http, endpoints: endpoints)
///     let account = try await google.userInfo(accessToken: token)
package protocol Google: Sendable {
    /// Sends refresh requests, and returns for each one the closure that cancels it. The caller parses the responses
    /// later, in batches.
    func refresh(_ submissions: [RefreshSubmission]) -> [@Sendable () -> Void]

    /// Exchanges an authorization code for tokens. A code can be used once. If the task is cancelled, the code might be
    /// spent.
    ///
    /// With a key, the refresh token that comes is bound to it.
    func exchange(_ code: Secret, client: OAuthClientCredentials, boundTo key: BindingKey?) async -> CodeExchange

    /// Revokes a grant by one of its tokens, bound or not: Google documents no proof for it.
    ///
    /// `mayStillSend` is called immediately before the request is sent. If it returns `false`, nothing is sent. It
    /// blocks every other request, so it must return at once.
    func revoke(_ token: Secret, mayStillSend: @escaping @Sendable () -> Bool) async -> RevocationResponse

    /// Returns the account that an access token belongs to.
    func userInfo(accessToken: Secret) async throws(LookupError) -> UserInfo

    /// Returns the client, scopes and expiry of an access token.
    func tokenInfo(accessToken: Secret) async throws(LookupError) -> TokenInfo
}

/// The outcome of a request to revoke a grant.
package enum RevocationResponse: Sendable, Hashable {
    /// The grant is revoked, or was before.
    case done
    case failed(LookupError)
    /// The worker did not send the request.
    case notSent(code: String)
}
