package import Storage

extension Grant {
    /// `true` if the stored tokens are good beside new ones of the same account.
    package var canKeepTokens: Bool {
        // The revocation at Google might be under way, so the grant is not revived.
        if reason == .userRequest { return false }
        // A refresh token of another account is never the user's.
        return !hasTokenOfAnotherAccount
    }
}
