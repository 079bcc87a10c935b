package import Base

/// One user of the backend: created by a sign-in, by a token of the backend's own, or by an import.
package struct User: Hashable, Sendable {
    /// The backend's name for the user.
    package let id: String
    package var createdAt: Timestamp
    package var email: String?
    package var emailIsVerified: Bool?
    package var name: String?
    package var picture: String?
    /// The account at Google that the user signs in with; no two users have the same.
    package var googleUserID: String?
    package var lastLoginAt: Timestamp?
    package var isActive: Bool
    /// `true` if a sign-in here created the user, and no import has brought the user since: the backend might know the
    /// account by another id.
    package var isFromSignIn: Bool
    /// Makes this a tombstone, which keeps only the id: the id is refused until the tombstone is removed, after this
    /// time.
    package internal(set) var deletedUntil: Timestamp?
    /// The latest expiry of the backend's tokens that were accepted for the user, or `nil` if the shortest tombstone
    /// outlives them all.
    package internal(set) var tokensUntil: Timestamp?

    package init(
        id: String,
        createdAt: Timestamp,
        email: String? = nil,
        emailIsVerified: Bool? = nil,
        name: String? = nil,
        picture: String? = nil,
        googleUserID: String? = nil,
        lastLoginAt: Timestamp? = nil,
        isActive: Bool = true,
        deletedUntil: Timestamp? = nil,
        tokensUntil: Timestamp? = nil,
        isFromSignIn: Bool = false
    ) {
        self.id = id
        self.createdAt = createdAt
        self.email = email
        self.emailIsVerified = emailIsVerified
        self.name = name
        self.picture = picture
        self.googleUserID = googleUserID
        self.lastLoginAt = lastLoginAt
        self.isActive = isActive
        self.isFromSignIn = isFromSignIn
        self.deletedUntil = deletedUntil
        self.tokensUntil = tokensUntil
    }

    /// `true` if only the id of the user is known, as after a grant was brought before the user.
    package var isPlaceholder: Bool { self == User(id: id, createdAt: createdAt) }

    /// `true` if the user was deleted: the id cannot be used until the tombstone is removed.
    package var isDeleted: Bool { deletedUntil != nil }
}
