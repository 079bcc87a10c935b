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
    /// The account at Google that the user signs in with, which no two users share.
    package var googleUserID: String?
    package var lastLoginAt: Timestamp?
    package var isActive = true
    /// Makes this a tombstone, which keeps only the id: the id is refused until the tombstone is removed, after this
    /// time.
    package internal(set) var deletedUntil: Timestamp?
    /// The latest expiry of the backend's tokens that were accepted for the user, or `nil` if the shortest tombstone
    /// outlives them all.
    var tokensUntil: Timestamp?
    /// `true` if a sign-in here created the user, and no import has brought the user since: the backend might know the
    /// account by another id.
    package var isFromSignIn = false
}

extension User {
    package init(id: String, createdAt: Timestamp) {
        self.id = id
        self.createdAt = createdAt
    }

    /// `true` if only the id of the user is known, as after a grant was brought before the user.
    package var isPlaceholder: Bool { self == User(id: id, createdAt: createdAt) }

    /// `true` if the user was deleted: the id cannot be used until the tombstone is removed.
    package var isDeleted: Bool { deletedUntil != nil }
}

/// The changes of a user between the first sign-in and the deletion.
extension User {
    /// Takes over what Google says about the account at a sign-in, except for fields that it omits.
    package mutating func signIn(as account: Grant.Owner, picture: String?, at now: Timestamp) {
        if let address = account.email {
            email = address
            emailIsVerified = account.emailIsVerified
        }
        googleUserID = account.googleUserID ?? googleUserID
        name = account.name ?? name
        self.picture = picture ?? self.picture
        lastLoginAt = now
    }

    /// Takes over what the sign-ins of another user with the same account at Google have told.
    package mutating func join(_ other: User) {
        if email == nil || email == other.email {
            email = other.email
            emailIsVerified = other.emailIsVerified ?? emailIsVerified
        }
        name = name ?? other.name
        picture = picture ?? other.picture
        lastLoginAt = [lastLoginAt, other.lastLoginAt].compactMap(\.self).max()
    }

    /// Remembers a token of the backend that outlives the shortest tombstone. Without this, a device that still holds
    /// the token would bring a deleted user back. A token that a tombstone outlives anyway needs no write.
    package mutating func accept(tokenUntil end: Timestamp, at now: Timestamp) {
        guard end > now + AccountDeletion.minimumTombstone else { return }
        tokensUntil = max(tokensUntil ?? end, end)
    }

    /// Deletes what identifies the user to a reader. The id at Google stays, so that the next sign-in finds the same
    /// user. It, or a token of the backend, brings the rest again.
    mutating func forget() {
        email = nil
        emailIsVerified = nil
        name = nil
        picture = nil
    }

    /// Deletes everything about the user but the id, which is refused until `end`, or for as long as an accepted token
    /// names it.
    mutating func delete(until end: Timestamp) {
        forget()
        googleUserID = nil
        lastLoginAt = nil
        isFromSignIn = false
        isActive = false
        deletedUntil = max(end, tokensUntil ?? end)
        tokensUntil = nil
    }
}
