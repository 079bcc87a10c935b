internal import Crypto

/// The two tokens of an app that has signed in.
struct SessionTokenPair: Sendable {
    let accessToken: Secret
    let refreshToken: Secret
    /// The remaining lifetime of the access token.
    let accessLifetime: Duration
}
