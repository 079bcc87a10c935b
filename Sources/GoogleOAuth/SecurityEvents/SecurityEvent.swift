/// One thing that Google tells of a user's account or tokens
/// (https://developers.google.com/identity/protocols/risc#supported_event_types).
package struct SecurityEvent: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// All tokens that the user gave to the app are dead.
        case tokensRevoked
        /// One refresh token is dead.
        case tokenRevoked(TokenName)
        /// All sessions at Google have ended.
        case sessionsRevoked
        /// The reason, where one is told, is `hijacking` or `bulk-account`.
        case accountDisabled(reason: String?)
        case accountEnabled
        case credentialChangeRequired
        /// Google was asked to send this one, to try the stream out.
        case verification(state: String?)
        /// A kind that is not known here, or whose subject cannot be read.
        case other
    }

    /// How an event names a refresh token without showing it.
    package enum TokenName: Hashable, Sendable {
        /// The first 16 characters.
        case prefix(String)
        /// The Base64 of the SHA-512 of the SHA-512.
        case doubleHash(String)
    }

    package let kind: Kind
    /// Whom it is about, by Google's id of the account; `nil` for an event that names a token or nobody.
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
