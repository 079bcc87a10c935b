internal import Store

/// Which stored users a Google account may be linked to by its e-mail address.
package enum EmailLinking: String, CaseIterable, Sendable {
    /// Users whose address was verified, by Google or by the backend whose token said so.
    case verified
    /// Users with any address, even one that its user has only claimed.
    case any
    /// No users.
    case never

    fileprivate func mayLink(_ user: User) -> Bool {
        switch self {
        case .verified: user.emailIsVerified == true
        case .any: true
        case .never: false
        }
    }
}

/// Which user a Google account signs in as.
enum SignInRules {
    /// The user with the account's id; else the user with its e-mail address, if that proves anything; else `nil`.
    ///
    /// An address counts only if Google decides whose it is, and only for a user without a Google account: otherwise a
    /// former holder of an address could sign in as its present user. By default the stored address must be verified as well: a
    /// stranger may have signed up elsewhere with the victim's address, and would share the account once the victim arrives.
    /// An address that several users have does not identify one of them.
    static func user(
        for identity: GoogleIdentity,
        withAccount: User?,
        withEmail: [User],
        linking: EmailLinking
    ) -> User? {
        if let withAccount { return withAccount }
        guard identity.googleIsAuthorityForEmail else { return nil }
        let candidates = withEmail.filter { user in
            user.googleUserID == nil && linking.mayLink(user) && !user.isDeleted
        }
        return candidates.count == 1 ? candidates[0] : nil
    }
}
