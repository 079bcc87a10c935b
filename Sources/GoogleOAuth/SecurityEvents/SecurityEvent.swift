import Base

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
        /// The account is disabled. The reason, if given, is `hijacking` or `bulk-account`.
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
    /// Google's id of the account, or `nil` if the event names a token, or no account at all.
    package internal(set) var googleUserID: String?

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

extension SecurityEvent {
    /// Reads one member of a token's `events`. An event whose subject has another issuer, or cannot be read, becomes
    /// ``Kind/other``. Google signed the token, and a refusal would only make Google send it again.
    static func reading(type: String, body: JSONValue, issuer: String) -> SecurityEvent {
        let subject = body["subject"]
        let user = subject.flatMap { userID(in: $0, issuer: issuer) }
        switch type {
        case EventType.verification:
            return SecurityEvent(kind: .verification(state: body["state"]?.string))
        case EventType.tokenRevoked:
            guard let name = subject.flatMap(tokenName) else { return SecurityEvent(kind: .other) }
            return SecurityEvent(kind: .tokenRevoked(name))
        default:
            guard let user, let kind = accountKind(type, reason: body["reason"]?.string) else {
                return SecurityEvent(kind: .other, googleUserID: user)
            }
            return SecurityEvent(kind: kind, googleUserID: user)
        }
    }

    private static func accountKind(_ type: String, reason: String?) -> Kind? {
        switch type {
        case EventType.tokensRevoked: .tokensRevoked
        case EventType.sessionsRevoked: .sessionsRevoked
        case EventType.accountDisabled: .accountDisabled(reason: reason)
        case EventType.accountEnabled: .accountEnabled
        case EventType.credentialChangeRequired: .credentialChangeRequired
        default: nil
        }
    }

    /// Returns the account of a subject of the types `iss-sub` and `id_token_claims`, which both have `iss` and `sub`.
    private static func userID(in subject: JSONValue, issuer: String) -> String? {
        guard let id = subject["sub"]?.string, (1...255).contains(id.utf8.count) else { return nil }
        if let other = subject["iss"] {
            guard let other = other.string, areSame(other, issuer) else { return nil }
        }
        return id
    }

    private static func tokenName(in subject: JSONValue) -> TokenName? {
        if let type = subject["token_type"], type != .string("refresh_token") { return nil }
        guard let token = subject["token"]?.string, (1...512).contains(token.utf8.count) else { return nil }
        switch subject["token_identifier_alg"]?.string {
        case "prefix": return .prefix(token)
        case "hash_base64_sha512_sha512": return .doubleHash(token)
        default: return nil
        }
    }
}

extension SecurityEvent {
    /// The names of the events, as in a token and in a stream's configuration.
    package enum EventType {
        private static let risc = "https://schemas.openid.net/secevent/risc/event-type/"
        private static let oauth = "https://schemas.openid.net/secevent/oauth/event-type/"

        static let tokensRevoked = oauth + "tokens-revoked"
        static let tokenRevoked = oauth + "token-revoked"
        static let sessionsRevoked = risc + "sessions-revoked"
        static let accountDisabled = risc + "account-disabled"
        static let accountEnabled = risc + "account-enabled"
        static let credentialChangeRequired = risc + "account-credential-change-required"
        static let verification = risc + "verification"

        /// The events that a stream requests. A verification is only sent on request, but Google lists it among the
        /// events.
        package static let all = [
            tokensRevoked, tokenRevoked, sessionsRevoked, accountDisabled, accountEnabled, credentialChangeRequired,
            verification,
        ]
    }
}

extension SecurityEvent {
    /// Compares two issuers. Google writes its own name with a trailing slash in one place and without it in another.
    static func areSame(_ first: String, _ second: String) -> Bool {
        func bare(_ issuer: String) -> Substring { issuer.hasSuffix("/") ? issuer.dropLast() : issuer[...] }
        return bare(first) == bare(second)
    }
}
