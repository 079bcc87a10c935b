package import Base

/// The content of a verified security event token from Google (RFC 8417).
package struct SecurityEventToken: Hashable, Sendable {
    static let maximumEvents = 16
    static let longestID = 255
    private static let longestLead = Duration.seconds(86_400)

    /// The id of the token (`jti`).
    ///
    /// Google sends the token again if it is not sure that it arrived.
    package let id: String
    /// The time of issue (`iat`), in whole seconds.
    package let issuedAt: Timestamp
    /// The time of the event itself (`toe`), in whole seconds; Google's own tokens do not have it.
    package let happenedAt: Timestamp?
    package let events: [SecurityEvent]

    package init(id: String, issuedAt: Timestamp, happenedAt: Timestamp? = nil, events: [SecurityEvent]) {
        self.id = id
        self.issuedAt = issuedAt
        self.happenedAt = happenedAt
        self.events = events
    }

    /// Reads the claims of a token whose signature is verified.
    ///
    /// `exp` is ignored: security events stay true (RFC 8417, section 2.2, and Google's own instruction).
    init(
        claims: JSONValue,
        issuer: String,
        clientIDs: Set<String>,
        at now: Timestamp
    ) throws(SecurityEventRefusal) {
        guard let claimed = claims["iss"]?.string, GoogleIssuer.areSame(claimed, issuer) else {
            throw .invalid(.issuer, "the token is from another issuer")
        }
        let audience = claims["aud"]
        let audiences = audience?.string.map { [$0] } ?? audience?.array?.compactMap(\.string) ?? []
        guard audiences.contains(where: clientIDs.contains) else {
            throw .invalid(.audience, "the token is for another audience")
        }
        guard let id = claims["jti"]?.string, (1...Self.longestID).contains(id.utf8.count) else {
            throw .invalid(.request, "jti is missing or too long")
        }
        guard let issued = claims["iat"]?.integer, Timestamp(secondsSince1970: issued) <= now + Self.longestLead else {
            throw .invalid(.request, "iat is missing or in the future")
        }
        guard let events = claims["events"]?.object, (1...Self.maximumEvents).contains(events.count) else {
            throw .invalid(.request, "events is missing, empty or too long")
        }
        self.id = id
        issuedAt = Timestamp(secondsSince1970: issued)
        // An event cannot happen after its token is issued; such a time is ignored.
        happenedAt = claims["toe"]?.integer.flatMap { $0 <= issued ? Timestamp(secondsSince1970: $0) : nil }
        self.events = events.sorted { $0.key < $1.key }.map { type, body in
            SecurityEvent.reading(type: type, body, issuer: issuer)
        }
    }
}
