public import Foundation

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
