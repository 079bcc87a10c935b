/// The outcome of one try to refresh a grant.
package enum RefreshOutcome: String, CaseIterable, Sendable {
    /// A new access token is stored.
    case refreshed
    /// The try failed for a temporary reason. Another one follows.
    case retrying
    /// Google refused the grant, and the refusal waits for confirmation.
    case held
    /// A policy or an administrator blocks the grant.
    case suspended
    /// Only the user can repair the grant, by signing in again.
    case reauthRequired = "reauth_required"
    /// Google or the user has ended the grant, or a disconnected grant was to be revoked.
    case disconnected
    /// The grant keeps its state: the client is at fault, or no request was sent.
    case unchanged
    /// The answer came for a refresh token that is not the stored one any more, and was not used.
    case void
    /// Another claim had replaced the one of this answer, which was not a success: another worker tries the grant.
    case lostLease = "lost_lease"
}
