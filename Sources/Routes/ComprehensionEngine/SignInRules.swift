internal import Storage

/// The choice of the user for a Google account that signs in.
enum SignInRules {
    /// Returns the user with the account's id, otherwise the user with its e-mail address if the address is sufficient
    /// proof.
    ///
    /// An address counts only if Google decides who owns it, and only for a user without a Google account: otherwise a
    /// former owner of an address could sign in as its present user. By default the stored address must be verified as
    /// well: an attacker may have signed up elsewhere with the victim's address, and would share the account once the
    /// victim signs in. An address that several users have does not identify one of them.
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
