import Observability
import Store

/// Answers that come after their grant has moved on.
extension RefreshRules {
    /// The outcome of a finding that is stored already; `nil` where it is not, or where that cannot be told.
    ///
    /// The sealed bytes are unique, so a stored token that has them came with this finding. A rotated token that was replaced since
    /// is known by its claim.
    func outcomeIfStored(_ finding: Finding, _ grant: Grant) -> RefreshOutcome? {
        guard grant.lease?.claim != finding.attempt.claim else { return nil }
        let attempt = finding.attempt
        let holdsRotated =
            finding.rotated.map { rotated in
                grant.refreshToken?.sealed == rotated.sealed
                    || grant.hasStoredRotation(by: attempt.claim, ofGeneration: attempt.generation)
            } ?? false
        switch finding.answer {
        case .granted(let tokens):
            return holdsRotated || grant.accessToken?.sealed == tokens.accessToken.sealed ? .refreshed : nil
        case .flawed:
            return holdsRotated ? .retrying : nil
        case .refused, .nothingToSend, .unreadable, .revocation:
            return nil
        }
    }

    /// Decides about an answer to a version of the refresh token that is no longer current.
    ///
    /// A worker stood still beyond its lease and comes late with a good answer. Meanwhile another one asked with the same token, was
    /// told that it is spent, and ended the grant; the grant may have been called back since, or reconnected without a refresh
    /// token. The token was spent by this very answer, which brings its successor: that is stored as long as the stored token is
    /// the one that was sent.
    func decideLate(
        _ finding: Finding,
        grant: inout Grant,
        health: inout ClientHealth,
        at moment: Moment,
        ruling: inout Ruling
    ) {
        ruling.outcome = .void
        guard let rotated = finding.rotated else { return }
        let attempt = finding.attempt
        let isWanted =
            grant.revocationAskedAt == nil && !grant.wasEndedByUser
            && (grant.holds(attempt.refreshToken) || grant.wasEndedByAnswer(to: attempt.generation))
        switch finding.answer {
        case .granted(let tokens) where isWanted:
            accept(tokens, of: attempt, grant: &grant, health: &health, at: moment, ruling: &ruling)
        case .flawed where isWanted:
            ruling.events = grant.rotate(to: rotated, at: moment.now)
            ruling.outcome = .lostLease
        default:
            guard health.rate.recordDroppedToken(at: moment.now) >= Self.droppedTokensToAlarm else { return }
            ruling.alarm = Alarm(
                kind: .rotatedTokensDropped,
                clientID: grant.clientID,
                text: """
                    several answers brought rotated refresh tokens for grants that have changed meanwhile, and were dropped: look \
                    for a second database in use, or for workers that stand still
                    """
            )
        }
    }
}
