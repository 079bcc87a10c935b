internal import Storage

/// The stored users that a Google account can be linked to by its e-mail address.
package enum EmailLinking: String, CaseIterable, Sendable {
    /// Users whose address was verified by Google, or by the backend according to its token.
    case verified
    /// Users with any address, even one that its user has only claimed.
    case any
    /// No user.
    case never

    /// Returns the user with the account's id, otherwise the user with its e-mail address if the address is sufficient
    /// proof.
    ///
    /// An address counts only if Google decides who owns it, and only for a user without a Google account: otherwise a
    /// former owner of an address could sign in as its present user. By default the stored address must be verified as
    /// well: an attacker might have signed up elsewhere with the victim's address, and would share the account once the
    /// victim signs in. An address that several users have does not identify one of them.
    func user(for identity: GoogleIdentity, in transaction: any StoreTransaction) throws -> User? {
        if let user = try transaction.user(withGoogleUserID: identity.googleUserID) { return user }
        guard identity.googleIsAuthorityForEmail else { return nil }
        let candidates = try transaction.users(withEmail: identity.email).filter { user in
            user.googleUserID == nil && mayLink(user) && !user.isDeleted
        }
        return candidates.count == 1 ? candidates[0] : nil
    }

    private func mayLink(_ user: User) -> Bool {
        switch self {
        case .verified: user.emailIsVerified == true
        case .any: true
        case .never: false
        }
    }
}
