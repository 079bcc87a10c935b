public import Foundation

extension AccountClient {
    /// The user's profile with the state of the connections to Google.
    public struct Profile: Decodable, Hashable, Sendable {
        /// The user's name, or empty until Google returns one.
        public let name: String
        /// The user's address.
        public let email: String
        /// The day on which the user was created, as its first instant in UTC.
        public let createdOn: Date
        /// When the user was created, or nil from a backend that does not say.
        public let createdAt: Date?
        /// `true` if the backend has a working grant for the default connection.
        public let isConnected: Bool
        /// The user's Google accounts. A backend that knows only one per user gives the default connection, if any.
        public let connections: [Connection]

        private enum CodingKeys: String, CodingKey {
            case name, email, connections
            case createdOn = "created_on"
            case createdAt = "created_at"
            // PayPulse's names.
            case isConnected = "gmail_account_connected"
            case defaultConnection = "gmail_connection"
        }

        /// Reads the profile of the backend's response.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            name = try container.decode(String.self, forKey: .name)
            email = try container.decode(String.self, forKey: .email)
            createdOn = try container.decode(Date.self, forKey: .createdOn)
            createdAt = try container.decodeIfPresent(Date.self, forKey: .createdAt)
            isConnected = try container.decode(Bool.self, forKey: .isConnected)
            if let connections = try container.decodeIfPresent([Connection].self, forKey: .connections) {
                self.connections = connections
            } else if let connection = try container.decodeIfPresent(Connection.self, forKey: .defaultConnection) {
                // A backend that does not know several connections.
                connections = [connection]
            } else {
                connections = []
            }
        }

        /// The connection with the id ``Connection/defaultID``, or nil if there never was one.
        public var defaultConnection: Connection? { connections.first { $0.id == Connection.defaultID } }

        /// Returns the scopes of `needed` that the user has not granted to the default connection, in that order. If it
        /// is not connected, all of them are missing: earlier grants no longer count.
        public func missingScopes(needed: [String]) -> [String] {
            // The backend itself says if the connection works, also in a state that this client does not know.
            let granted = isConnected ? defaultConnection?.grantedScopes : nil
            return Connection.missing(needed, from: granted ?? [])
        }
    }
}

extension AccountClient {
    /// Returns the user's profile.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    public func profile() async throws(AccountError) -> Profile { try await profile(as: nil) }

    func profile(as account: Int?) async throws(AccountError) -> Profile {
        try await call(Envelope<Profile>.self, "GET", "v1/user/me", as: account).data
    }
}
