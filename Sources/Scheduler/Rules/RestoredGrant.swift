import Base
import Storage

/// The grants of a database that was restored from a backup.
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
        let claim = result.claim
        guard var grant = try grant(claim.grant) else { return nil }
        guard result.answer.containsTokens, let sent = claim.refreshToken ?? result.answer.rotated,
            grant.isRestored(fromBefore: claim, sent: sent), try isNewest(result, of: grant)
        else { return grant }
        grant.advance(to: claim.generation, refreshToken: sent, clientID: claim.clientID)
        return grant
    }

    /// `true` if nothing has happened to the grant since the answer arrived.
    private func isNewest(_ result: RefreshResult, of grant: Grant) throws -> Bool {
        guard grant.reason != .userDeleted, let answeredAt = result.answeredAt else { return false }
        let events = [try lastConnection(of: grant.id), grant.lastSuccessAt, grant.endedByUserAt]
        return events.compactMap(\.self).allSatisfy { $0 <= answeredAt }
    }
}

extension Grant {
    /// `true` if the grant is from a backup that was made before the claim. The token of a user who signs in again
    /// after the restore can get the number of the one that was sent.
    fileprivate func isRestored(fromBefore claim: RefreshClaim, sent: RefreshToken) -> Bool {
        if generation < claim.generation { return true }
        return generation == claim.generation && claim.refreshToken != nil && !holds(sent)
    }
}

extension RefreshResult {
    /// The time of an answer with tokens, or the last known time before it.
    fileprivate var answeredAt: Timestamp? {
        guard case .granted(let tokens) = answer else { return claim.lastAttemptAt }
        return tokens.accessToken.obtainedAt
    }
}

extension Grant {
    /// The time at which the user ended the grant, or `nil` if it is connected or ended for another reason. Not
    /// `since`: a grant that was disconnected already keeps that.
    var endedByUserAt: Timestamp? {
        guard wasEndedByUser || revocationAskedAt != nil else { return nil }
        return lastAttemptAt ?? since
    }
}
