#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What the worker tells a backend about a user.
///
/// Which members a notice has depends on its kind: docs/services.md lists them.
public struct Notice: Hashable, Sendable, Identifiable {
    /// What happened. A later worker can send other kinds: answer them with 2xx too.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The name in the notice, such as `grant.disconnected`.
        public let rawValue: String

        /// Creates a kind from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A connection works again: the members `connection`, `state`, `formerState`, `reason`.
        public static let connected = Kind(rawValue: "grant.connected")
        /// A connection works no longer: the same members.
        public static let disconnected = Kind(rawValue: "grant.disconnected")
        /// A refresh returned fewer scopes: `lostScopes` and `grantedScopes`.
        public static let scopesLost = Kind(rawValue: "grant.scopes_lost")
        /// The user must sign in again before `expiresAt`.
        public static let expiring = Kind(rawValue: "grant.expiring")
        /// A stolen token ended the session `sessionID` for both holders.
        public static let sessionReuseDetected = Kind(rawValue: "session.reuse_detected")
        /// The user was deleted.
        public static let userDeleted = Kind(rawValue: "user.deleted")
        /// `refresh-worker notices test` sent it. It has no user.
        public static let test = Kind(rawValue: "test")
    }

    /// The id, which is the same for each delivery.
    public let id: String
    /// What happened.
    public let kind: Kind
    /// When it happened.
    public let timestamp: Date
    /// The user whom it is about. Only a test has none.
    public let userID: String?
    /// The worker's id of the grant.
    public let grantID: String?
    /// The id of the user's connection.
    public let connection: String?
    /// `true` if the connection works now.
    public let isConnected: Bool?
    /// The state of the connection now, such as `reauth_required`.
    public let state: String?
    /// The state before.
    public let formerState: String?
    /// The code of the reason for the state.
    public let reason: String?
    /// The scopes that the grant had before.
    public let lostScopes: [String]
    /// The scopes that are left.
    public let grantedScopes: [String]
    /// When the refresh token ends.
    public let expiresAt: Date?
    /// The `sid` of the access tokens to refuse.
    public let sessionID: String?
    /// Your own labels of the connection.
    public let labels: [String: String]
}

extension Notice {
    private struct Message: Decodable {
        let id: String
        let type: String
        let timestamp: String
        let data: Content
    }

    private struct Content: Decodable {
        enum CodingKeys: String, CodingKey {
            case userID = "user_id"
            case grantID = "grant_id"
            case connection
            case isConnected = "connected"
            case state
            case formerState = "former_state"
            case reason
            case lostScopes = "lost_scopes"
            case grantedScopes = "granted_scopes"
            case expiresAt = "expires_at"
            case sessionID = "session_id"
            case labels
        }

        let userID: String?
        let grantID: String?
        let connection: String?
        let isConnected: Bool?
        let state: String?
        let formerState: String?
        let reason: String?
        let lostScopes: [String]?
        let grantedScopes: [String]?
        let expiresAt: String?
        let sessionID: String?
        let labels: [String: String]?
    }

    init(body: [UInt8]) throws(NoticeError) {
        let message: Message
        do {
            message = try JSONDecoder().decode(Message.self, from: Data(body))
        } catch {
            throw .unreadable
        }
        let content = message.data
        id = message.id
        kind = Kind(rawValue: message.type)
        timestamp = try Self.date(message.timestamp)
        userID = content.userID
        grantID = content.grantID
        connection = content.connection
        isConnected = content.isConnected
        state = content.state
        formerState = content.formerState
        reason = content.reason
        lostScopes = content.lostScopes ?? []
        grantedScopes = content.grantedScopes ?? []
        if let text = content.expiresAt { expiresAt = try Self.date(text) } else { expiresAt = nil }
        sessionID = content.sessionID
        labels = content.labels ?? [:]
    }

    /// Reads a time such as `2026-11-21T03:17:39.123Z`, with or without the fraction.
    private static func date(_ text: String) throws(NoticeError) -> Date {
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: text.contains("."))
        do {
            return try format.parse(text)
        } catch {
            throw .unreadable
        }
    }
}
