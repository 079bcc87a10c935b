public import Foundation

extension AccountClient {
    /// The user's profile with the state of the connection to Gmail.
    public struct Profile: Decodable, Hashable, Sendable {
        /// The user's name, or empty until Google returns one.
        public let name: String
        /// The user's address.
        public let email: String
        /// The day on which the user was created, as its first instant in UTC.
        public let createdOn: Date
        /// When the user was created, or nil from a backend that does not say.
        public let createdAt: Date?
        /// `true` if the backend has a working grant of the user.
        public let isGmailConnected: Bool
        /// The state of the grant, or nil if there never was one.
        public let gmailConnection: GmailConnection?

        private enum CodingKeys: String, CodingKey {
            case name, email
            case createdOn = "created_on"
            case createdAt = "created_at"
            case isGmailConnected = "gmail_account_connected"
            case gmailConnection = "gmail_connection"
        }

        /// Returns the scopes of `needed` that the user has not granted, in that order. If Gmail is not connected, all
        /// of them are missing: earlier grants no longer count.
        public func missingScopes(needed: [String]) -> [String] {
            let granted = isGmailConnected ? gmailConnection?.grantedScopes ?? [] : []
            return Self.missing(needed, from: granted)
        }
    }

    /// The state of the user's grant at Google.
    public struct GmailConnection: Decodable, Hashable, Sendable {
        /// `active`, `retrying`, `suspended`, `reauth_required` or `disconnected`. The first two are connected.
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
            case state, reason, since
            case verifiedAt = "verified_at"
            case expiresAt = "expires_at"
            case googleEmail = "google_email"
            case grantedScopes = "granted_scopes"
        }
    }

    /// The backend's response to new tokens.
    public struct StoredGrant: Decodable, Hashable, Sendable {
        /// The Google account's address.
        public let googleEmail: String
        /// The scopes that the user has granted, separated by spaces.
        public let scope: String
        /// `true` if this is another Google account than before.
        public let isAccountSwitch: Bool
        /// The outcome, for people.
        public let message: String
        /// `true` if a `serverAuthCode` brought no refresh token, and the backend has none that works: call the SDK's
        /// `disconnect()`, and sign in again. `nil` without a code.
        public let isRefreshTokenMissing: Bool?

        private enum CodingKeys: String, CodingKey {
            case scope, message
            case isRefreshTokenMissing = "refresh_token_missing"
            case googleEmail = "google_email"
            case isAccountSwitch = "account_switch"
        }

        /// The scopes that the user has granted.
        public var grantedScopes: [String] { scope.split(separator: " ").map(String.init) }
    }
}

/// Compares scopes in the form in which Google grants them.
extension AccountClient.Profile {
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

extension AccountClient {
    /// The signed-in user, as the backend returns it.
    public struct User: Decodable, Hashable, Sendable {
        /// The backend's id of the user.
        public let id: String
        /// The address that Google verified.
        public let email: String?
        /// The name, as Google last returned it.
        public let name: String?
        /// The address of the user's picture at Google.
        public let picture: String?
        /// The address of the picture to show.
        public let avatarURL: String?
        /// When the user was created.
        public let createdAt: Date?
        /// The time of the user's last sign-in.
        public let lastLogin: Date?
        /// `true` if the user can use the backend.
        public let isActive: Bool

        private enum CodingKeys: String, CodingKey {
            case id, email, name, picture
            case avatarURL = "avatar_url"
            case createdAt = "created_at"
            case lastLogin = "last_login"
            case isActive = "is_active"
        }
    }

    /// Returns the signed-in user from the backend.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    public func fetchCurrentUser() async throws(AccountError) -> User {
        try await call(User.self, "GET", "api/auth/me")
    }
}
