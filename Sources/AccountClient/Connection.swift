public import Foundation

extension AccountClient {
    /// One of the user's Google accounts, as the backend has it.
    ///
    ///     for connection in try await client.connections() where !connection.isConnected {
    ///         show(connection.googleEmail, connection.reason)
    ///     }
    public struct Connection: Decodable, Hashable, Identifiable, Sendable {
        /// The id of the connection that a call means if it names none. A user's first connection has it.
        public static let defaultID = "default"
        /// What a request says that is for one more account.
        static let wordForNew = "new"

        /// The backend's id of the connection: ASCII letters, digits, `-` and `_`.
        public let id: String
        /// `active`, `retrying`, `suspended`, `reauth_required`, `disconnected`, or a state of a later backend. The first
        /// two are connected.
        public let state: String
        /// The reason for the state, as a code.
        public let reason: String?
        /// The time of the last change of the state.
        public let since: Date?
        /// When Google last confirmed the grant.
        public let verifiedAt: Date?
        /// When Google ends the grant, or nil if no end is known. The user must sign in with Google again
        /// before it.
        public let expiresAt: Date?
        /// The Google account's address.
        public let googleEmail: String?
        /// The scopes that the user has granted.
        public let grantedScopes: [String]

        private enum CodingKeys: String, CodingKey {
            case id, state, reason, since
            case verifiedAt = "verified_at"
            case expiresAt = "expires_at"
            case googleEmail = "google_email"
            case grantedScopes = "granted_scopes"
        }

        /// Reads a connection of the backend's response.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            // The profile's `gmail_connection` has no id. It is always the default one.
            id = try container.decodeIfPresent(String.self, forKey: .id) ?? Self.defaultID
            state = try container.decode(String.self, forKey: .state)
            reason = try container.decodeIfPresent(String.self, forKey: .reason)
            since = try container.decodeIfPresent(Date.self, forKey: .since)
            verifiedAt = try container.decodeIfPresent(Date.self, forKey: .verifiedAt)
            expiresAt = try container.decodeIfPresent(Date.self, forKey: .expiresAt)
            googleEmail = try container.decodeIfPresent(String.self, forKey: .googleEmail)
            grantedScopes = try container.decode([String].self, forKey: .grantedScopes)
        }

        /// `true` if the backend has a working grant for this account. A state of a later backend counts as `false`.
        public var isConnected: Bool { state == "active" || state == "retrying" }

        /// Returns the scopes of `needed` that the user has not granted, in that order. If the account is not connected,
        /// all of them are missing: earlier grants no longer count.
        public func missingScopes(needed: [String]) -> [String] {
            Self.missing(needed, from: isConnected ? grantedScopes : [])
        }
    }
}

extension AccountClient.Connection {
    /// Returns an id that can stand in a request, and throws for one that no connection has.
    ///
    /// Escaping would not do: proxies resolve `%2E%2E%2F` too, and `../user/me` is another route. The words `new`
    /// and `google` have meanings of their own.
    static func checked(_ id: String) throws(AccountError) -> String {
        let isPlain = id.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_") }
        guard isPlain, !id.isEmpty, ![wordForNew, "google"].contains(id) else { throw .unknownConnection }
        return id
    }
}

/// Compares scopes in the form in which Google grants them.
extension AccountClient.Connection {
    /// Two scopes that Google accepts by their OpenID Connect names and returns by these.
    ///
    /// https://developers.google.com/identity/protocols/oauth2/scopes#oauth2
    private static let fullNames = [
        "email": "https://www.googleapis.com/auth/userinfo.email",
        "profile": "https://www.googleapis.com/auth/userinfo.profile",
    ]

    static func missing(_ needed: [String], from granted: [String]) -> [String] {
        var present = Set(granted.map(fullName))
        return needed.filter { present.insert(fullName($0)).inserted }
    }

    private static func fullName(_ scope: String) -> String { fullNames[scope] ?? scope }
}
