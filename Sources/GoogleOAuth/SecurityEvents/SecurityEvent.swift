/// One event about a user's account or tokens, from Google
/// (https://developers.google.com/identity/protocols/risc#supported_event_types).
package struct SecurityEvent: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// All tokens of this user for the app are dead.
        case tokensRevoked
        /// One refresh token is dead.
        case tokenRevoked(TokenName)
        /// All sessions at Google have ended.
        case sessionsRevoked
        /// The account is disabled; the reason, if given, is `hijacking` or `bulk-account`.
        case accountDisabled(reason: String?)
        case accountEnabled
        case credentialChangeRequired
        /// A test event that the worker requested.
        case verification(state: String?)
        /// An unknown kind, or an event whose subject cannot be read.
        case other
    }

    /// The identification of a refresh token in an event, without the token.
    package enum TokenName: Hashable, Sendable {
        /// The first 16 characters.
        case prefix(String)
        /// The Base64 of the SHA-512 of the SHA-512.
        case doubleHash(String)
    }

    package let kind: Kind
    /// Google's id of the account; `nil` if the event names a token, or no account at all.
    package let googleUserID: String?

    package init(_ kind: Kind, googleUserID: String? = nil) {
        self.kind = kind
        self.googleUserID = googleUserID
    }

    /// A short code for logs.
    package var code: String {
        switch kind {
        case .tokensRevoked: "tokens_revoked"
        case .tokenRevoked: "token_revoked"
        case .sessionsRevoked: "sessions_revoked"
        case .accountDisabled: "account_disabled"
        case .accountEnabled: "account_enabled"
        case .credentialChangeRequired: "credential_change_required"
        case .verification: "verification"
        case .other: "other"
        }
    }
}
