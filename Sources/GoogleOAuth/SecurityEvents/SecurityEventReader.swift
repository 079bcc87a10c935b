package import Base
import Crypto

/// Verifies posted security event tokens.
package struct SecurityEventReader: Sendable {
    /// The maximum size of a body.
    package static let maximumBody = 65_536

    let keys: KeySetCache
    /// Returns the client ids that are configured at this moment.
    ///
    /// A reload can change them.
    let clientIDs: @Sendable () -> [String]
    private let time: any TimeSource

    package init(keys: KeySetCache, clientIDs: @escaping @Sendable () -> [String], time: any TimeSource) {
        self.keys = keys
        self.clientIDs = clientIDs
        self.time = time
    }

    /// Returns the verified content of the body, which is a compact token.
    ///
    /// No claim is read before the signature is verified.
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

    /// The id of the token (`jti`).
    ///
    /// Google sends the token again if it is not sure that it arrived.
    package let id: String
    /// The client ids that the token is for (`aud`).
    package let audiences: [String]
    /// The time of issue (`iat`), in whole seconds.
    package let issuedAt: Timestamp
    /// The time of the event itself (`toe`), in whole seconds.
    ///
    /// Google's own tokens do not have it.
    package internal(set) var happenedAt: Timestamp?
    package let events: [SecurityEvent]
}

extension SecurityEventToken {
    /// Reads the claims of a token whose signature is verified.
    ///
    /// `exp` is ignored: security events stay true (RFC 8417, section 2.2, and Google's own instruction).
    init(
        claims: JSONValue,
        issuer: String,
        clientIDs: Set<String>,
        at now: Timestamp
    ) throws(SecurityEventError) {
        guard let claimed = claims["iss"]?.string, SecurityEvent.areSame(claimed, issuer) else {
            throw .invalid(.issuer, "the token is from another issuer")
        }
        let audience = claims["aud"]
        let audiences = audience?.string.map { [$0] } ?? audience?.array?.compactMap(\.string) ?? []
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
        happenedAt = claims["toe"]?.integer.flatMap { $0 <= issued ? Timestamp(secondsSince1970: $0) : nil }
        self.events = events.sorted { $0.key < $1.key }.map { type, body in
            SecurityEvent.reading(type: type, body, issuer: issuer)
        }
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

    /// The token is invalid.
    ///
    /// The text does not quote it.
    case invalid(Code, String)
    /// Google's keys are not available now, so the token cannot be verified.
    case unavailable(retryAfter: Duration)
}
