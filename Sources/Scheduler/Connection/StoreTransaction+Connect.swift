package import Base
package import Storage

extension StoreTransaction {
    /// Stores the tokens that a user's app has brought: as a new grant, or by the reconnection of the stored one.
    /// `stored` and `reconnection` are `nil` for a new grant. The due time follows from the tokens after the change.
    package func connect(
        _ incoming: IncomingTokens,
        as id: GrantID,
        ofUser userID: String,
        changing stored: Grant?,
        by reconnection: Reconnection?,
        at now: Timestamp
    ) throws -> (grant: Grant, events: [GrantEvent]) {
        let change: (grant: Grant, events: [GrantEvent])
        if let reconnection, var grant = stored {
            if reconnection.replacesRefreshToken || reconnection.discardsStored {
                try rememberRefreshToken(of: grant, at: now)
            }
            let events = reconnection.apply(to: &grant, at: now) { DuePolicy.due($0, at: now) }
            try update(grant)
            change = (grant, events)
        } else {
            let dueAt = DuePolicy.due(
                accessToken: incoming.accessToken,
                hasRefreshToken: incoming.refreshToken != nil,
                phase: id.phase,
                at: now
            )
            change = Grant.connected(id: id, userID: userID, incoming: incoming, dueAt: dueAt, at: now)
            try insert(change.grant)
        }
        for event in change.events { try record(event) }
        return change
    }
}
