extension SecurityEvent {
    /// The names of the events, as in a token and in a stream's configuration.
    package enum EventType {
        private static let risc = "https://schemas.openid.net/secevent/risc/event-type/"
        private static let oauth = "https://schemas.openid.net/secevent/oauth/event-type/"

        package static let tokensRevoked = oauth + "tokens-revoked"
        package static let tokenRevoked = oauth + "token-revoked"
        package static let sessionsRevoked = risc + "sessions-revoked"
        package static let accountDisabled = risc + "account-disabled"
        package static let accountEnabled = risc + "account-enabled"
        package static let credentialChangeRequired = risc + "account-credential-change-required"
        package static let verification = risc + "verification"

        /// The events that a stream requests.
        ///
        /// A verification is only sent on request, but Google lists it among the events.
        package static let all = [
            tokensRevoked, tokenRevoked, sessionsRevoked, accountDisabled, accountEnabled, credentialChangeRequired,
            verification,
        ]
    }
}
