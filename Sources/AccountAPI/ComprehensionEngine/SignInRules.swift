internal import Store

/// Which user a Google account signs in as.
enum SignInRules {
    /// The user who has the account's id; else the one with its e-mail address, where that may be believed; else nobody yet.
    ///
    /// An address counts only where Google decides whose it is, and only for a user without a Google account: else whoever
    /// once had a user's address could sign in as that user. An address that was told unverified proves nothing, and one
    /// that several users have does not say which is meant.
    static func user(for identity: GoogleIdentity, withAccount: User?, withEmail: [User]) -> User? {
        if let withAccount { return withAccount }
        guard identity.googleIsAuthorityForEmail else { return nil }
        let candidates = withEmail.filter { user in
            user.googleUserID == nil && user.emailIsVerified != false && !user.isDeleted
        }
        return candidates.count == 1 ? candidates[0] : nil
    }
}
