package import Clocks

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

    /// Deletes everything about the user but the id, which is refused until `end`, because tokens that name it may live
    /// until then.
    mutating func delete(until end: Timestamp) {
        email = nil
        emailIsVerified = nil
        name = nil
        picture = nil
        googleUserID = nil
        lastLoginAt = nil
        isActive = false
        deletedUntil = max(end, deletedUntil ?? end)
    }
}
