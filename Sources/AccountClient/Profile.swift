public import Foundation

extension AccountClient {
    /// The user's profile, with how the connection to Gmail stands.
    public struct Profile: Decodable, Hashable, Sendable {
        /// The user's name; empty until Google gave one.
        public let name: String
        /// The user's address.
        public let email: String
        /// The day on which the user was created, as its first instant in UTC.
        public let createdOn: Date
        /// Whether the backend holds a grant of the user's that works.
        public let isGmailConnected: Bool
        /// How the grant stands; nil where there never was one.
        public let gmailConnection: GmailConnection?

        private enum CodingKeys: String, CodingKey {
            case name, email
            case createdOn = "created_on"
            case isGmailConnected = "gmail_account_connected"
            case gmailConnection = "gmail_connection"
        }

        /// The scopes of `needed` that the user has not granted, in that order.
        ///
        /// Where Gmail is not connected that is all of them: what was once granted is of no use any more.
        public func missingScopes(needed: [String]) -> [String] {
            let granted = isGmailConnected ? gmailConnection?.grantedScopes ?? [] : []
            return Scopes.missing(needed, from: granted)
        }
    }

    /// How the user's grant at Google stands.
    public struct GmailConnection: Decodable, Hashable, Sendable {
        /// `active`, `retrying`, `suspended`, `reauth_required` or `disconnected`; the first two are connected.
        public let state: String
        /// Why it is in that state, as a code.
        public let reason: String?
        /// Since when it is in that state.
        public let since: Date?
        /// When Google last confirmed it.
        public let verifiedAt: Date?
        /// The Google account's address.
        public let googleEmail: String?
        /// The scopes that the user has granted.
        public let grantedScopes: [String]

        private enum CodingKeys: String, CodingKey {
            case state, reason, since
            case verifiedAt = "verified_at"
            case googleEmail = "google_email"
            case grantedScopes = "granted_scopes"
        }
    }

    /// What the backend made of the tokens that it was given.
    public struct StoredGrant: Decodable, Hashable, Sendable {
        /// The Google account's address.
        public let googleEmail: String
        /// The scopes that the user has granted, separated by spaces.
        public let scope: String
        /// Whether this is another Google account than the one before.
        public let isAccountSwitch: Bool
        /// What happened, for people.
        public let message: String

        private enum CodingKeys: String, CodingKey {
            case scope, message
            case googleEmail = "google_email"
            case isAccountSwitch = "account_switch"
        }

        /// The scopes that the user has granted.
        public var grantedScopes: [String] { scope.split(separator: " ").map(String.init) }
    }
}

/// Compares scopes as Google grants them.
enum Scopes {
    /// Two scopes that Google takes by their OpenID Connect names and answers by these.
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
