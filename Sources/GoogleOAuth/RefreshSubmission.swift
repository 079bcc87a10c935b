import Base
package import Crypto

/// A refresh of one grant, to be sent to the token endpoint.
///
/// Its closures block every other request, so they must return at once.
package struct RefreshSubmission: Sendable {
    package let token: Secret
    package let client: OAuthClientCredentials
    /// The key that the token is bound to, or `nil` for one that is not bound.
    package let bindingKey: BindingKey?
    /// Called immediately before each request is sent. If it returns `false`, nothing is sent.
    package let mayStillSend: @Sendable () -> Bool
    /// Called before a challenge is answered by a second request, at most once.
    package let willAnswerChallenge: @Sendable () -> Void
    /// Called once with the response, possibly before ``Google/refresh(_:)`` returns.
    package let receive: @Sendable (RefreshResponse) -> Void

    package init(
        token: Secret,
        client: OAuthClientCredentials,
        bindingKey: BindingKey? = nil,
        mayStillSend: @escaping @Sendable () -> Bool,
        willAnswerChallenge: @escaping @Sendable () -> Void = {},
        receive: @escaping @Sendable (RefreshResponse) -> Void
    ) {
        self.token = token
        self.client = client
        self.bindingKey = bindingKey
        self.mayStillSend = mayStillSend
        self.willAnswerChallenge = willAnswerChallenge
        self.receive = receive
    }
}
