/// What became of a grant in one try at refreshing it.
package enum RefreshOutcome: String, CaseIterable, Sendable {
    /// A new access token is stored.
    case refreshed
    /// The try failed for a reason that passes; another follows.
    case retrying
    /// Google refused the grant, and a second opinion is awaited before that is believed.
    case held
    /// A policy or an administrator blocks the grant.
    case suspended
    /// Only the user can mend the grant, by signing in again.
    case reauthRequired = "reauth_required"
    /// The grant is dead.
    case disconnected
    /// The fault is the client's; the grant stays as it is.
    case unchanged
    /// The answer belongs to a refresh token that is no longer the stored one, and was not used.
    case void
    /// The claim on the grant ran out before the request was sent, so it was not sent.
    case lostLease = "lost_lease"
}
