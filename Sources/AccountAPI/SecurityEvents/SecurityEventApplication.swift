import Clocks
import GoogleOAuth
import Observability
import Store

/// The result of one event.
struct AppliedSecurityEvent: Sendable {
    let kind: String
    var outcome: SecurityEventEvent.Outcome
    var grants = 0
    var sessions = 0
    /// State changes of grants, for the logs.
    var changes: [GrantEvent] = []
}

/// Applies the events of one token inside a transaction, so that either all of them are stored or none.
struct SecurityEventApplication {
    /// The time until a grant of a disabled account is probed.
    private static let probeAfter = Duration.seconds(86_400)
    /// The limit of grants that are probed for one event that may mean any of them.
    private static let mostProbes = 16

    let transaction: any StoreTransaction
    let token: SecurityEventToken
    let now: Timestamp

    func apply(_ event: SecurityEvent) throws -> AppliedSecurityEvent {
        var booked = AppliedSecurityEvent(kind: event.code, outcome: .recorded)
        guard !SecurityEventRules.isForTheRecord(event.kind) else { return booked }
        // The ids of such old tokens have been deleted, so this token may be a replay.
        guard token.happenedAt ?? token.issuedAt >= now - Retention.securityEvents else {
            booked.outcome = .outdated
            return booked
        }
        let grants = try grants(meantBy: event)
        let users = try users(meantBy: event, grants: grants)
        guard !grants.isEmpty || !users.isEmpty else {
            booked.outcome = .unmatched
            return booked
        }
        booked.outcome = .applied
        let isAmbiguous = event.namesToken && grants.count > 1
        if isAmbiguous { booked.outcome = .ambiguous }
        for grant in grants.prefix(isAmbiguous ? Self.mostProbes : .max) {
            let mayBeOlder = SecurityEventRules.mayPrecede(
                lastConnection: try transaction.lastConnection(of: grant.id) ?? grant.createdAt,
                token,
                receivedAt: now
            )
            let action = SecurityEventRules.action(for: event.kind, mayBeOlder: mayBeOlder, on: grant)
            guard let events = try apply(isAmbiguous ? .probe : action, to: grant) else { continue }
            booked.grants += 1
            booked.changes += events
            if action == .probe, event.kind != .accountEnabled, !isAmbiguous { booked.outcome = .outdated }
        }
        for user in users { booked.sessions += try transaction.endSessions(ofUser: user) }
        return booked
    }

    private func grants(meantBy event: SecurityEvent) throws -> [Grant] {
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
        case .leave: return nil
        }
        guard grant != stored else { return nil }
        try transaction.update(grant)
        for event in events { try transaction.record(event) }
        return events
    }

    /// Returns the users that sign in with the account, and those that have connected it, if the event ends their
    /// sessions.
    private func users(meantBy event: SecurityEvent, grants: [Grant]) throws -> Set<String> {
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
