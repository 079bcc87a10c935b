public import Foundation

extension AccountClient {
    /// The signed-in user, as the backend tells it.
    public struct User: Decodable, Hashable, Sendable {
        /// The backend's id of the user.
        public let id: String
        /// The address that Google verified.
        public let email: String?
        /// The name, as Google last gave it.
        public let name: String?
        /// Where Google keeps the user's picture.
        public let picture: String?
        /// Where the picture to show is.
        public let avatarURL: String?
        /// When the user first came.
        public let createdAt: Date?
        /// When the user last signed in.
        public let lastLogin: Date?
        /// Whether the user may use the backend.
        public let isActive: Bool

        private enum CodingKeys: String, CodingKey {
            case id, email, name, picture
            case avatarURL = "avatar_url"
            case createdAt = "created_at"
            case lastLogin = "last_login"
            case isActive = "is_active"
        }
    }

    /// Asks the backend who is signed in.
    ///
    /// - Throws: As ``perform(_:)``, and ``AccountError/refused(status:code:message:)``.
    public func fetchCurrentUser() async throws(AccountError) -> User {
        try await call(User.self, "GET", "api/auth/me")
    }
}
