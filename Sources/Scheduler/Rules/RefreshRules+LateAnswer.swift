import Base
import Storage
import Telemetry

/// The rules about answers that arrive after their grant has changed.
extension RefreshRules {
    /// Returns the outcome of a result that is stored already, or `nil` if it is not stored, or if that is unknown.
    ///
    /// The sealed bytes are unique, so a stored token with the same bytes came with this result. A rotated token that
    /// has been replaced since is recognised by its claim.
    func outcomeIfStored(in context: DecisionContext) -> RefreshOutcome? {
        guard !context.holdsLease else { return nil }
        switch context.result.answer {
        case .granted(let tokens):
            let holdsAccessToken = context.grant.accessToken?.sealed == tokens.accessToken.sealed
            return holdsAccessToken || context.hasStoredRotatedToken ? .refreshed : nil
        case .flawed: return context.hasStoredRotatedToken ? .retrying : nil
        case .failed, .withoutRefreshToken, .unreadable, .revocation: return nil
        }
    }

    /// Decides about an answer to a version of the refresh token that is not current any more.
    ///
    /// Example: worker A sends a refresh, pauses beyond its lease, and then comes with a good answer. Before that, B
    /// sent the same token and got the answer that it is spent. Five minutes later B has ended the grant. It might have
    /// been recalled since, or reconnected without a refresh token. A's answer spent the token and holds its successor, so it is
    /// stored as long as the stored token is the one that A sent.
    ///
    /// If the user has disconnected since A sent it, the successor is the token to revoke.
    func decideLate(in context: inout DecisionContext) -> RefreshDecision {
        guard let rotated = context.result.answer.rotated else { return context.decision(.void) }
        switch context.result.answer {
        case .granted(let tokens) where context.wantsLateToken: return decideGranted(tokens, in: &context)
        case .flawed where context.wantsLateToken:
            return context.decision(.lostLease) { $0.rotate(to: rotated, at: context.now) }
        case _ where context.grant.wasEndedByRequest(during: context.result.claim.generation):
            return context.decision(.void) { $0.revoke(rotated: rotated, at: context.now) }
        default:
            let dropped = context.health.rate.recordDroppedToken(at: context.now)
            var decision = context.decision(.void)
            guard dropped >= Self.droppedTokensToAlarm else { return decision }
            decision.alarm = RefreshDecision.Alarm(
                kind: .rotatedTokensDropped,
                text: """
                    several answers brought rotated refresh tokens for grants that had changed, and were dropped: look \
                    for a second database in use, or for workers that stand still
                    """
            )
            return decision
        }
    }
}

extension DecisionContext {
    /// `true` if the rotated token of the answer is stored, or was until another replaced it.
    fileprivate var hasStoredRotatedToken: Bool {
        guard let rotated = result.answer.rotated else { return false }
        if grant.refreshToken?.sealed == rotated.sealed { return true }
        return grant.hasStoredRotation(by: result.claim.number, ofGeneration: result.claim.generation)
    }

    /// `true` if the answer's rotated token continues the stored one, or the one whose refusal ended the grant.
    fileprivate var wantsLateToken: Bool {
        if grant.revocationAskedAt != nil || grant.wasEndedByUser { return false }
        return grant.holds(result.claim.refreshToken) || grant.wasEndedByAnswer(to: result.claim.generation)
    }
}
