import Base
import GoogleOAuth
import Storage

/// Applies the events of one token inside a transaction, so that all of them are stored, or none.
struct SecurityEventApplier {
    /// How soon a grant of a disabled account is probed.
    private static let probeAfter = Duration.seconds(86_400)
    /// The limit of grants that are probed for one ambiguous event.
    private static let maximumProbes = 16

    let transaction: any StoreTransaction
    let token: SecurityEventToken
    let now: Timestamp

    func apply(_ event: SecurityEvent) throws -> AppliedSecurityEvent {
        var applied = AppliedSecurityEvent(kind: event.code, outcome: .recorded)
        if event.kind.isOnlyRecorded { return applied }
        // The ids of such old tokens have been deleted, so this token might be a replay.
        guard token.happenedAt ?? token.issuedAt >= now - Retention.identifiers else {
            applied.outcome = .outdated
            return applied
        }
        let grants = try grants(namedBy: event)
        let users = try users(namedBy: event, grants: grants)
        guard !grants.isEmpty || !users.isEmpty else {
            applied.outcome = .unmatched
            return applied
        }
        let isAmbiguous = event.namesToken && grants.count > 1
        applied.outcome = isAmbiguous ? .ambiguous : .applied
        for grant in grants.prefix(isAmbiguous ? Self.maximumProbes : .max) {
            let match = try match(of: event, with: grant, isAmbiguous: isAmbiguous)
            guard let changes = try apply(match.action, to: grant) else { continue }
            applied.grants += 1
            applied.changes += changes
            if match.outcome != .applied { applied.outcome = match.outcome }
        }
        for user in users { applied.sessions += try transaction.endSessions(ofUser: user) }
        return applied
    }

    private func match(of event: SecurityEvent, with grant: Grant, isAmbiguous: Bool) throws -> EventMatch {
        let lastConnection = try transaction.lastConnection(of: grant.id) ?? grant.createdAt
        return EventMatch(
            kind: event.kind,
            grant: grant,
            isAmbiguous: isAmbiguous,
            isOfOtherProject: isOfOtherProject(event, than: grant),
            mayPrecedeConnection: token.mayPrecede(lastConnection: lastConnection, receivedAt: now)
        )
    }

    /// Google says that the tokens of one project are dead. Those of another might be alive.
    private func isOfOtherProject(_ event: SecurityEvent, than grant: Grant) -> Bool {
        guard event.kind == .tokensRevoked else { return false }
        return !token.audiences.contains { GoogleProject.isShared($0, grant.clientID) }
    }

    private func grants(namedBy event: SecurityEvent) throws -> [Grant] {
        switch event.kind {
        case .tokenRevoked(let name):
            guard let mark = name.mark else { return [] }
            return try transaction.grants(withRefreshTokenMark: mark)
        default:
            guard let account = event.googleUserID else { return [] }
            return try transaction.grants(ofGoogleUser: account)
        }
    }

    /// Returns the changes of state, or `nil` if nothing changes.
    private func apply(_ action: SecurityEventAction, to stored: Grant) throws -> [GrantEvent]? {
        var grant = stored
        var events: [GrantEvent] = []
        switch action {
        case .disconnect(let reason): events = grant.disconnectByEvent(reason: reason, at: now)
        case .suspend(let reason): events = grant.suspend(reason: reason, probeAt: now + Self.probeAfter, at: now)
        case .askGoogle: grant.makeDueNow(at: now)
        case .ignore: return nil
        }
        guard grant != stored else { return nil }
        try transaction.update(grant)
        for event in events { try transaction.record(event) }
        return events
    }

    /// Returns the users that sign in with the account, and those that have connected it, if the event ends their
    /// sessions.
    private func users(namedBy event: SecurityEvent, grants: [Grant]) throws -> [String] {
        guard event.kind.endsSessions, let account = event.googleUserID else { return [] }
        let owner = try transaction.user(withGoogleUserID: account).map(\.id)
        // By bytes, as the store compares ids: é can be one character or two.
        var seen: Set<[UInt8]> = []
        return (grants.map(\.userID) + [owner].compactMap(\.self)).filter { seen.insert(Array($0.utf8)).inserted }
    }
}

extension SecurityEvent {
    fileprivate var namesToken: Bool {
        if case .tokenRevoked = kind { true } else { false }
    }
}

extension SecurityEvent.TokenName {
    /// The mark by which the token is found, or `nil` if the text is none.
    fileprivate var mark: TokenMark? {
        switch self {
        case .prefix(let text): TokenMark(prefix: text)
        case .doubleHash(let text): TokenMark(doubleHash: text)
        }
    }
}

/// What is known about an event and one of the grants that it names.
private struct EventMatch {
    let kind: SecurityEvent.Kind
    let grant: Grant
    /// The event names a token, and several grants have one of this name.
    let isAmbiguous: Bool
    let isOfOtherProject: Bool
    /// The event might have happened before the app last sent tokens.
    let mayPrecedeConnection: Bool

    var action: SecurityEventAction {
        if isAmbiguous { return .askGoogle }
        return kind.action(on: grant, mustAskGoogle: mayPrecedeConnection || isOfOtherProject)
    }

    var outcome: SecurityEventOutcome {
        if isAmbiguous { return .ambiguous }
        guard action == .askGoogle, kind != .accountEnabled else { return .applied }
        return isOfOtherProject ? .ambiguous : .outdated
    }
}
