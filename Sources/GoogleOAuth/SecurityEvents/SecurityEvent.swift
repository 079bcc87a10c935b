package import Base
import Crypto

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

/// Verifies posted security event tokens.
///
///     let reader = SecurityEventReader(keys: keys, clientIDs: { ["123.apps.googleusercontent.com"] }, time: time)
///     let token = try await reader.read(body)
///     for event in token.events { … }
package struct SecurityEventReader: Sendable {
    /// The maximum size of a body.
    package static let maximumBody = 65_536

    let keys: KeySetCache
    /// Returns the client ids that are configured at this moment. A reload can change them.
    let clientIDs: @Sendable () -> [String]
    private let time: any TimeSource

    package init(keys: KeySetCache, clientIDs: @escaping @Sendable () -> [String], time: any TimeSource) {
        self.keys = keys
        self.clientIDs = clientIDs
        self.time = time
    }

    /// Returns the verified content of the body, which is a compact token. No claim is read before the signature is
    /// verified.
    package func read(_ body: [UInt8]) async throws(SecurityEventError) -> SecurityEventToken {
        let token: SignedToken
        do throws(CryptoError) {
            token = try SignedToken(Self.text(of: body), limit: Self.maximumBody)
        } catch {
            switch error {
            case .unsupportedAlgorithm: throw .invalid(.key, "the token is not signed by RS256")
            default: throw .invalid(.request, "the body is not a signed token")
            }
        }
        guard let keyID = token.keyID else { throw .invalid(.key, "the token does not name a key") }
        let issuer: String?
        let key: PublicKey?
        do throws(KeySetCache.Unavailable) {
            (issuer, key) = try await keys.key(id: keyID)
        } catch {
            throw .unavailable(retryAfter: error.retryAfter)
        }
        // An unknown key and a bad signature get the same message.
        guard let issuer, let key, token.verifies(with: key) else {
            throw .invalid(.key, "the token is not signed by a key of the issuer")
        }
        return try SecurityEventToken(claims: token.claims, issuer: issuer, clientIDs: Set(clientIDs()), at: time.now)
    }

    /// Returns the body as text, without the line break that tools add at the end.
    private static func text(of body: [UInt8]) -> String {
        let end = body.lastIndex { $0 != 0x0a && $0 != 0x0d && $0 != 0x20 } ?? -1
        return String(decoding: body[...end], as: UTF8.self)
    }
}

/// The content of a verified security event token from Google (RFC 8417).
package struct SecurityEventToken: Hashable, Sendable {
    static let maximumEvents = 16
    static let maximumID = 255
    private static let maximumLead = Duration.seconds(86_400)

    /// The id of the token (`jti`). Google sends the token again if it is not sure that it arrived.
    package let id: String
    /// The client ids that the token is for (`aud`).
    package let audiences: [String]
    /// The time of issue (`iat`), in whole seconds.
    package let issuedAt: Timestamp
    /// The time of the event itself (`toe`), in whole seconds. Google's own tokens do not have it.
    package internal(set) var happenedAt: Timestamp?
    package let events: [SecurityEvent]
}

extension SecurityEventToken {
    /// Reads the claims of a token whose signature is verified. `exp` is ignored: security events stay true (RFC 8417,
    /// section 2.2, and Google's own instruction).
    init(claims: JSONValue, issuer: String, clientIDs: Set<String>, at now: Timestamp) throws(SecurityEventError) {
        guard let claimed = claims["iss"]?.string, SecurityEvent.areSame(claimed, issuer) else {
            throw .invalid(.issuer, "the token is from another issuer")
        }
        let audiences = Self.audiences(of: claims)
        guard audiences.contains(where: clientIDs.contains) else {
            throw .invalid(.audience, "the token is for another audience")
        }
        guard let id = claims["jti"]?.string, (1...Self.maximumID).contains(id.utf8.count) else {
            throw .invalid(.request, "jti is missing or too long")
        }
        guard let issued = claims["iat"]?.integer, Timestamp(secondsSince1970: issued) <= now + Self.maximumLead else {
            throw .invalid(.request, "iat is missing or in the future")
        }
        guard let events = claims["events"]?.object, (1...Self.maximumEvents).contains(events.count) else {
            throw .invalid(.request, "events is missing, empty or too long")
        }
        self.id = id
        self.audiences = audiences
        issuedAt = Timestamp(secondsSince1970: issued)
        // An event cannot happen after its token is issued. Such a time is ignored.
        if let happened = claims["toe"]?.integer, happened <= issued {
            happenedAt = Timestamp(secondsSince1970: happened)
        }
        self.events = events.sorted { $0.key < $1.key }.map { type, body in
            SecurityEvent.reading(type: type, body: body, issuer: issuer)
        }
    }

    /// Returns the members of `aud`, which is one text or a list.
    private static func audiences(of claims: JSONValue) -> [String] {
        if let only = claims["aud"]?.string { return [only] }
        return claims["aud"]?.array?.compactMap(\.string) ?? []
    }
}

/// The reason why a security event token is not accepted.
package enum SecurityEventError: Error, Hashable, Sendable {
    /// The codes of RFC 8935, section 2.4.
    package enum Code: String, Sendable {
        case request = "invalid_request"
        case key = "invalid_key"
        case issuer = "invalid_issuer"
        case audience = "invalid_audience"
    }

    /// The token is invalid. The text does not quote it.
    case invalid(Code, String)
    /// Google's keys are not available now, so the token cannot be verified.
    case unavailable(retryAfter: Duration)
}
