import Base
import Storage

extension StoreTransaction {
    /// Stores the grant of a decision about a stored one, with its history and the notices that are due. The caller
    /// stores the health.
    func store(_ decision: RefreshDecision, about stored: Grant, at now: Timestamp) throws {
        guard let grant = decision.grant else { return }
        try update(grant)
        try record(decision, changing: stored, to: grant, at: now)
    }

    /// Stores a decision about a grant as it was claimed. If the stored grant has changed since, it stores nothing and
    /// returns `false`.
    func store(_ decision: RefreshDecision, replacing claimed: Grant, at now: Timestamp) throws -> Bool {
        guard let grant = decision.grant, try replace(claimed, by: grant) else { return false }
        try record(decision, changing: claimed, to: grant, at: now)
        return true
    }

    private func record(
        _ decision: RefreshDecision,
        changing former: Grant,
        to grant: Grant,
        at now: Timestamp
    ) throws {
        for event in decision.events {
            try record(event)
            if event.kind == .rotated { try rememberSpentToken(of: former, at: now) }
        }
        guard !decision.lostScopes.isEmpty else { return }
        let lost = decision.lostScopes.joined(separator: " ")
        try notify(
            .lostScopes(of: Notice.Subject(grant), lost: lost, granted: grant.scope),
            ofUser: grant.userID,
            at: now
        )
    }
}
