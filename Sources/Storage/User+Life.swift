package import Base

/// The changes of a user between the first sign-in and the deletion.
extension User {
    /// Takes over what Google says about the account at a sign-in; fields that it omits stay.
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

    /// Remembers a token of the backend that outlives the shortest tombstone.
    ///
    /// Without this, a device that still holds the token would bring a deleted user back. A token that a tombstone
    /// outlives anyway needs no write.
    package mutating func accept(tokenUntil end: Timestamp, at now: Timestamp) {
        guard end > now + AccountDeletion.shortestTombstone else { return }
        tokensUntil = tokensUntil.map { max($0, end) } ?? end
    }

    /// Deletes everything about the user but the id, which is refused until `end`, or for as long as an accepted token
    /// names it.
    mutating func delete(until end: Timestamp) {
        email = nil
        emailIsVerified = nil
        name = nil
        picture = nil
        googleUserID = nil
        lastLoginAt = nil
        isActive = false
        isFromSignIn = false
        deletedUntil = max(end, tokensUntil ?? end)
        tokensUntil = nil
    }
}
