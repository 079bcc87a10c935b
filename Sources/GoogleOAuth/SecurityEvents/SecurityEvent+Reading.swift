import Base

extension SecurityEvent {
    /// Reads one member of a token's `events`.
    ///
    /// An event whose subject has another issuer, or cannot be read, becomes ``Kind/other``. Google signed the token,
    /// and a refusal would only make Google send it again.
    static func reading(type: String, _ body: JSONValue, issuer: String) -> SecurityEvent {
        let subject = body["subject"]
        let user = subject.flatMap { userID(in: $0, issuer: issuer) }
        switch type {
        case EventType.verification:
            return SecurityEvent(.verification(state: body["state"]?.string))
        case EventType.tokenRevoked:
            guard let name = subject.flatMap(tokenName) else { return SecurityEvent(.other) }
            return SecurityEvent(.tokenRevoked(name))
        default:
            guard let user, let kind = accountKind(type, reason: body["reason"]?.string) else {
                return SecurityEvent(.other, googleUserID: user)
            }
            return SecurityEvent(kind, googleUserID: user)
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
            guard let other = other.string, GoogleIssuer.areSame(other, issuer) else { return nil }
        }
        return id
    }

    private static func tokenName(in subject: JSONValue) -> TokenName? {
        guard subject["token_type"] == nil || subject["token_type"] == .string("refresh_token"),
            let token = subject["token"]?.string, (1...512).contains(token.utf8.count)
        else { return nil }
        switch subject["token_identifier_alg"]?.string {
        case "prefix": return .prefix(token)
        case "hash_base64_sha512_sha512": return .doubleHash(token)
        default: return nil
        }
    }
}
