package import Base
package import Storage

extension StoreTransaction {
    /// Stores the tokens that a user's app has brought: as a new grant, or by the reconnection of the stored one.
    ///
    /// `stored` and `reconnection` are `nil` for a new grant. The due time follows from the tokens after the change. Two
    /// connections of one user never share an account: one that has had this account until now ends.
    package func connect(
        _ incoming: IncomingTokens,
        as new: NewConnection,
        changing stored: Grant?,
        by reconnection: Reconnection?,
        at now: Timestamp
    ) throws -> GrantChange {
        var change: GrantChange
        if let reconnection, var grant = stored {
            if reconnection.replacesRefreshToken || reconnection.discardsStored {
                try rememberRefreshToken(of: grant, at: now)
            }
            let events = reconnection.apply(to: &grant, at: now) { grant in
                incoming.bounded(DuePolicy.due(grant, at: now), at: now)
            }
            let left = try leaveAccount(of: grant, at: now)
            try update(grant)
            change = GrantChange(grant: grant, events: left + events)
        } else {
            let dueAt = DuePolicy.due(
                accessToken: incoming.accessToken,
                hasRefreshToken: incoming.refreshToken != nil,
                phase: new.id.phase,
                at: now
            )
            let (grant, events) = Grant.connected(
                id: new.id,
                userID: new.userID,
                connection: new.connection,
                incoming: incoming,
                dueAt: incoming.bounded(dueAt, at: now),
                at: now
            )
            let left = try leaveAccount(of: grant, at: now)
            try insert(grant)
            change = GrantChange(grant: grant, events: left + events)
        }
        for event in change.events { try record(event) }
        return change
    }

    /// Ends the user's other connection that has the account of this grant.
    private func leaveAccount(of grant: Grant, at now: Timestamp) throws -> [GrantEvent] {
        var events: [GrantEvent] = []
        for other in try grants(ofUser: grant.userID) where other.id != grant.id {
            guard other.isConnection(of: grant.owner) else { continue }
            // An old export must not bring its token back once the account has left this connection.
            try rememberRefreshToken(of: other, at: now)
            var left = other
            events += left.leaveAccount(at: now)
            try update(left)
        }
        return events
    }
}

extension IncomingTokens {
    /// Returns a due time that is early enough for the refresh token, and not in the past.
    fileprivate func bounded(_ dueAt: Timestamp, at now: Timestamp) -> Timestamp {
        guard let latestDueAt else { return dueAt }
        return max(now, min(dueAt, latestDueAt))
    }
}
