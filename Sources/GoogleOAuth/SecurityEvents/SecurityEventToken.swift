package import Base

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
