import Base
import GoogleOAuth
import Storage
import Telemetry

/// Applies the events of one token inside a transaction, so that all of them are stored, or none.
struct SecurityEventApplier {
    /// The time until a grant of a disabled account is probed.
    private static let probeAfter = Duration.seconds(86_400)
    /// The limit of grants that are probed for one ambiguous event.
    private static let maxProbes = 16

    let transaction: any StoreTransaction
    let token: SecurityEventToken
    let now: Timestamp

    func apply(_ event: SecurityEvent) throws -> AppliedSecurityEvent {
        var applied = AppliedSecurityEvent(kind: event.code, outcome: .recorded)
        guard !SecurityEventRules.isOnlyRecorded(event.kind) else { return applied }
        // The ids of such old tokens have been deleted, so this token may be a replay.
        guard token.happenedAt ?? token.issuedAt >= now - Retention.securityEvents else {
            applied.outcome = .outdated
            return applied
        }
        let grants = try grants(namedBy: event)
        let users = try users(namedBy: event, grants: grants)
        guard !grants.isEmpty || !users.isEmpty else {
            applied.outcome = .unmatched
            return applied
        }
        applied.outcome = .applied
        let isAmbiguous = event.namesToken && grants.count > 1
        if isAmbiguous { applied.outcome = .ambiguous }
        for grant in grants.prefix(isAmbiguous ? Self.maxProbes : .max) {
            let mayBeOlder = SecurityEventRules.mayPrecede(
                lastConnection: try transaction.lastConnection(of: grant.id) ?? grant.createdAt,
                token,
                receivedAt: now
            )
            let action = SecurityEventRules.action(for: event.kind, mayBeOlder: mayBeOlder, on: grant)
            guard let events = try apply(isAmbiguous ? .probe : action, to: grant) else { continue }
            applied.grants += 1
            applied.changes += events
            if action == .probe, event.kind != .accountEnabled, !isAmbiguous { applied.outcome = .outdated }
        }
        for user in users { applied.sessions += try transaction.endSessions(ofUser: user) }
        return applied
    }

    private func grants(namedBy event: SecurityEvent) throws -> [Grant] {
        switch event.kind {
        case .tokenRevoked(let name):
            let mark =
                switch name {
                case .prefix(let text): TokenMark(prefix: text)
                case .doubleHash(let text): TokenMark(doubleHash: text)
                }
            return try mark.map { try transaction.grants(withRefreshTokenMark: $0) } ?? []
        default:
            return try event.googleUserID.map { try transaction.grants(ofGoogleUser: $0) } ?? []
        }
    }

    /// Returns the changes of state, or `nil` if nothing changes.
    private func apply(_ action: SecurityEventRules.GrantAction, to stored: Grant) throws -> [GrantEvent]? {
        var grant = stored
        var events: [GrantEvent] = []
        switch action {
        case .disconnect(let reason): events = grant.disconnectByEvent(reason: reason, at: now)
        case .suspend(let reason): events = grant.suspend(reason: reason, probeAt: now + Self.probeAfter, at: now)
        case .probe: grant.probeNow(at: now)
        case .ignore: return nil
        }
        guard grant != stored else { return nil }
        try transaction.update(grant)
        for event in events { try transaction.record(event) }
        return events
    }

    /// Returns the users that sign in with the account, and those that have connected it, if the event ends their
    /// sessions.
    private func users(namedBy event: SecurityEvent, grants: [Grant]) throws -> Set<String> {
        guard SecurityEventRules.endsSessions(event.kind), let account = event.googleUserID else { return [] }
        let signedIn = try transaction.user(withGoogleUserID: account).map { [$0.id] } ?? []
        return Set(signedIn + grants.map(\.userID))
    }
}

extension SecurityEvent {
    fileprivate var namesToken: Bool {
        if case .tokenRevoked = kind { true } else { false }
    }
}
