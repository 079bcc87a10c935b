import Base
package import Crypto

/// A refresh of one grant, to be sent to the token endpoint.
///
/// Its closures block every other request, so they must return at once.
package struct RefreshSubmission: Sendable {
    package let token: Secret
    package let client: OAuthClientCredentials
    /// Called immediately before the request is sent. If it returns `false`, nothing is sent.
    package let mayStillSend: @Sendable () -> Bool
    /// Called once with the response, possibly before ``Google/refresh(_:)`` returns.
    package let receive: @Sendable (RefreshResponse) -> Void

    package init(
        token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool,
        receive: @escaping @Sendable (RefreshResponse) -> Void
    ) {
        self.token = token
        self.client = client
        self.mayStillSend = mayStillSend
        self.receive = receive
    }
}
