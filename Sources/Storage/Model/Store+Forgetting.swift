package import Base

/// The retention of ended grants: what makes the user identifiable is deleted some time after the end.
extension Store {
    private var pageSize: Int { 500 }
    /// Each grant takes three round trips to PostgreSQL, during which no other transaction can change a grant.
    private var transactionSize: Int { 25 }

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
                var forgotten: [Grant] = []
                for first in stride(from: 0, to: ids.count, by: transactionSize) {
                    let part = Array(ids[first..<min(first + transactionSize, ids.count)])
                    forgotten += try await forget(part, endedBefore: end, isDryRun: isDryRun, at: now)
                }
                if !forgotten.isEmpty { try await report(forgotten) }
                let isLast = page.count < pageSize
                return (forgotten.count, isLast ? nil : page.last.map { Optional.some($0.id) })
            }
        }
    }

    private func forget(_ ids: [GrantID], endedBefore end: Timestamp, isDryRun: Bool, at now: Timestamp) async throws
        -> [Grant]
    {
        try await transact { transaction in
            try transaction.willRead(grants: ids, healthOf: [])
            return try ids.compactMap { id in
                guard let grant = try transaction.grant(id), grant.isForgettable(endedBefore: end) else { return nil }
                guard let user = try transaction.user(grant.userID) else { return nil }
                if let lastLoginAt = user.lastLoginAt, lastLoginAt >= end { return nil }
                if try transaction.hasSession(ofUser: user.id) { return nil }
                guard !isDryRun else { return grant }
                var (emptied, stranger) = (grant, user)
                let event = emptied.forget(at: now)
                // Another connection still shows who the user is.
                let others = try transaction.grants(ofUser: user.id).filter { $0.id != id }
                if others.allSatisfy({ $0.isForgotten }) { stranger.forget() }
                // An old export must not bring the account back.
                try transaction.rememberRefreshToken(of: grant, at: now)
                try transaction.update(emptied)
                try transaction.record(event)
                if stranger != user { try transaction.update(stranger) }
                return grant
            }
        }
    }
}
