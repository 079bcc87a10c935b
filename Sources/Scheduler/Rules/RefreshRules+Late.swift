import Base
import Storage
import Telemetry

extension StoreTransaction {
    /// Returns the grant that a result is about, as the rules decide about it.
    ///
    /// A stored version below the one that was sent shows that the database is a restored backup. Its refresh token was
    /// replaced by the one that was sent, so the result continues from there. Example: the backup has version 3. The
    /// worker has sent version 6 and got version 7, which is now the only token that works.
    ///
    /// An event after the answer is newer than it, in spite of the lower version: the user signed in again or
    /// disconnected, or the stored token has worked.
    func grant(for result: RefreshResult) throws -> Grant? {
        let attempt = result.attempt
        guard var grant = try grant(attempt.grant) else { return nil }
        guard result.answer.containsTokens, let sent = attempt.refreshToken ?? result.rotated,
            grant.generation < attempt.generation
                || grant.generation == attempt.generation && attempt.refreshToken != nil && !grant.holds(sent),
            grant.reason != .userDeleted, let answeredAt = result.answeredAt,
            try [lastConnection(of: grant.id), grant.lastSuccessAt, grant.endedByUserAt]
                .allSatisfy({ $0.map { $0 <= answeredAt } ?? true })
        else { return grant }
        grant.advance(to: attempt.generation, refreshToken: sent, clientID: attempt.clientID)
        return grant
    }
}

extension RefreshResult {
    /// The time of an answer with tokens, or the last known time before it.
    fileprivate var answeredAt: Timestamp? {
        guard case .granted(let tokens) = answer else { return attempt.lastAttemptAt }
        return tokens.accessToken.obtainedAt
    }
}

extension Grant {
    fileprivate var endedByUserAt: Timestamp? {
        wasEndedByUser || revocationAskedAt != nil ? lastAttemptAt ?? since : nil
    }
}

/// The rules about answers that arrive after their grant has changed.
extension RefreshRules {
    /// Returns the outcome of a result that is stored already; `nil` if it is not stored, or if that is unknown.
    ///
    /// The sealed bytes are unique, so a stored token with the same bytes came with this result. A rotated token that
    /// has been replaced since is recognised by its claim.
    func outcomeIfStored(_ context: DecisionContext) -> RefreshOutcome? {
        guard !context.holdsLease else { return nil }
        let (grant, attempt) = (context.grant, context.result.attempt)
        let holdsRotated =
            context.result.rotated.map { rotated in
                grant.refreshToken?.sealed == rotated.sealed
                    || grant.hasStoredRotation(by: attempt.claim, ofGeneration: attempt.generation)
            } ?? false
        switch context.result.answer {
        case .granted(let tokens):
            return holdsRotated || grant.accessToken?.sealed == tokens.accessToken.sealed ? .refreshed : nil
        case .flawed:
            return holdsRotated ? .retrying : nil
        case .failed, .nothingToSend, .unreadable, .revocation:
            return nil
        }
    }

    /// Decides about an answer to a version of the refresh token that is not current any more.
    ///
    /// Example: worker A sends a refresh, pauses beyond its lease, and then comes with a good answer. Before that, B
    /// sent the same token, got the answer that it is spent, and ended the grant; the grant may have been recalled
    /// since, or reconnected without a refresh token. A's answer spent the token and holds its successor, so it is
    /// stored as long as the stored token is the one that A sent.
    ///
    /// If the user has disconnected since A sent it, the successor is the token to revoke.
    func decideLate(_ context: inout DecisionContext) -> RefreshDecision {
        guard let rotated = context.result.rotated else {
            return RefreshDecision(.void, grant: context.grant, health: context.health)
        }
        let attempt = context.result.attempt
        var (grant, health) = (context.grant, context.health)
        let isWanted =
            grant.revocationAskedAt == nil && !grant.wasEndedByUser
            && (grant.holds(attempt.refreshToken) || grant.wasEndedByAnswer(to: attempt.generation))
        switch context.result.answer {
        case .granted(let tokens) where isWanted:
            return accept(tokens, &context)
        case .flawed where isWanted:
            let events = grant.rotate(to: rotated, at: context.now)
            return RefreshDecision(.lostLease, grant: grant, events: events, health: health)
        case _ where grant.wasEndedByRequest(during: attempt.generation):
            let events = grant.revoke(rotated: rotated, at: context.now)
            return RefreshDecision(.void, grant: grant, events: events, health: health)
        default:
            let dropped = health.rate.recordDroppedToken(at: context.now)
            var decision = RefreshDecision(.void, grant: grant, health: health)
            guard dropped >= Self.droppedTokensToAlarm else { return decision }
            decision.alarm = Alarm(
                kind: .rotatedTokensDropped,
                clientID: grant.clientID,
                text: """
                    several answers brought rotated refresh tokens for grants that had changed, and were dropped: look \
                    for a second database in use, or for workers that stand still
                    """
            )
            return decision
        }
    }
}
