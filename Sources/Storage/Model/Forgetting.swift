package import Base

/// The retention of ended grants: what makes the user identifiable is deleted some time after the end.
extension Grant {
    /// `true` if the grant ended before `end`, nothing is left to revoke, and it still holds what can be forgotten.
    func isForgettable(endedBefore end: Timestamp) -> Bool {
        state.endsRefreshes && since < end && revocationAskedAt == nil
            && ![GrantReason.forgotten, .userDeleted].contains(reason)
    }

    /// Deletes the tokens and the account, and keeps the id and the history.
    ///
    /// The state does not change for the user, who is connected neither before nor after, so no notice is made.
    mutating func forget(at now: Timestamp) -> GrantEvent {
        let endedAt = since
        enter(.disconnected, reason: .forgotten, at: now)
        since = endedAt
        wipeTokens()
        scope = ""
        return GrantEvent(of: self, kind: .state, from: state, at: now)
    }
}

extension Store {
    private var pageSize: Int { 500 }

    /// Forgets the grants that ended before `end`, with the addresses and names of their users, and calls `report` with
    /// each page of them as they were.
    ///
    /// A user who has a session, or has signed in since the end, still uses the app and is left out. `isDryRun` only
    /// reports.
    package func forgetGrants(
        endedBefore end: Timestamp,
        isDryRun: Bool = false,
        at now: Timestamp,
        report: ([Grant]) async throws -> Void = { _ in }
    ) async throws {
        for state in GrantState.allCases where state.endsRefreshes {
            try await changePages(after: GrantID?.none) { cursor in
                let page = try await grants(after: cursor, in: state, atMost: pageSize)
                let ids = page.filter { $0.isForgettable(endedBefore: end) }.map(\.id)
                let forgotten = try await forget(ids, endedBefore: end, isDryRun: isDryRun, at: now)
                if !forgotten.isEmpty { try await report(forgotten) }
                let isLast = page.count < pageSize
                return (forgotten.count, isLast ? nil : page.last.map { Optional.some($0.id) })
            }
        }
    }

    private func forget(_ ids: [GrantID], endedBefore end: Timestamp, isDryRun: Bool, at now: Timestamp) async throws
        -> [Grant]
    {
        guard !ids.isEmpty else { return [] }
        return try await transact { transaction in
            try transaction.willRead(grants: ids, healthOf: [])
            return try ids.compactMap { id in
                guard let grant = try transaction.grant(id), grant.isForgettable(endedBefore: end),
                    let user = try transaction.user(grant.userID), user.lastLoginAt.map({ $0 < end }) ?? true,
                    try !transaction.hasSession(ofUser: user.id)
                else { return nil }
                guard !isDryRun else { return grant }
                var (emptied, stranger) = (grant, user)
                let event = emptied.forget(at: now)
                stranger.forget()
                try transaction.update(emptied)
                try transaction.record(event)
                if stranger != user { try transaction.update(stranger) }
                return grant
            }
        }
    }
}
