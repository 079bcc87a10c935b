import Base
import GoogleOAuth
import Storage

/// Applies the events of one token inside a transaction, so that all of them are stored, or none.
struct SecurityEventApplier {
    /// The time until a grant of a disabled account is probed.
    private static let probeAfter = Duration.seconds(86_400)
    /// The limit of grants that are probed for one ambiguous event.
    private static let maximumProbes = 16

    /// The effect on one grant.
    fileprivate enum GrantAction: Equatable {
        /// Deletes the tokens, which are dead.
        case disconnect(GrantReason)
        case suspend(GrantReason)
        /// Sends a refresh, because Google's answer decides.
        case probe
        case ignore
    }

    let transaction: any StoreTransaction
    let token: SecurityEventToken
    let now: Timestamp

    func apply(_ event: SecurityEvent) throws -> AppliedSecurityEvent {
        var applied = AppliedSecurityEvent(kind: event.code, outcome: .recorded)
        guard !event.kind.isOnlyRecorded else { return applied }
        // The ids of such old tokens have been deleted, so this token might be a replay.
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
        for grant in grants.prefix(isAmbiguous ? Self.maximumProbes : .max) {
            let mayBeOlder = token.mayPrecede(
                lastConnection: try transaction.lastConnection(of: grant.id) ?? grant.createdAt,
                receivedAt: now
            )
            // Google says that the tokens of one project are dead. Those of another might be alive.
            let isOtherProject =
                event.kind == .tokensRevoked && !token.audiences.contains { GoogleProject.isShared($0, grant.clientID) }
            let action = event.kind.action(on: grant, mayBeOlder: mayBeOlder || isOtherProject)
            guard let events = try apply(isAmbiguous ? .probe : action, to: grant) else { continue }
            applied.grants += 1
            applied.changes += events
            if action == .probe, event.kind != .accountEnabled, !isAmbiguous {
                applied.outcome = isOtherProject ? .ambiguous : .outdated
            }
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
    private func apply(_ action: GrantAction, to stored: Grant) throws -> [GrantEvent]? {
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
        guard event.kind.endsSessions, let account = event.googleUserID else { return [] }
        let signedIn = try transaction.user(withGoogleUserID: account).map { [$0.id] } ?? []
        return Set(signedIn + grants.map(\.userID))
    }
}

extension SecurityEvent {
    fileprivate var namesToken: Bool {
        if case .tokenRevoked = kind { true } else { false }
    }
}

/// The result of one event.
struct AppliedSecurityEvent: Sendable {
    let kind: String
    var outcome: SecurityEventOutcome
    var grants = 0
    var sessions = 0
    /// State changes of grants, for the logs.
    var changes: [GrantEvent] = []
}

/// What was done about an event, in words that the metrics log explains.
enum SecurityEventOutcome: String, Sendable {
    case applied, unmatched, ambiguous, outdated, recorded, repeated
}

extension SecurityEventToken {
    /// The limit of the time between an event and the issue of its token.
    ///
    /// Google does not document one. A user who disconnects and signs in again immediately must keep the new token. For
    /// example: at 0 s the user disconnects, at 5 s signs in again, at 20 s Google issues `tokens-revoked` for the
    /// tokens of 0 s.
    private static let maximumDelayOfIssue = Duration.seconds(15 * 60)

    /// `true` if the event might have happened before the app last sent tokens: then it might be about former tokens.
    ///
    /// Google's tokens have only a time of issue: the event might have happened up to ``maximumDelayOfIssue`` before
    /// it. If the time of issue is ahead of this machine's clock, the clock is slow, and so is the stored time of the
    /// connection. Times are in whole seconds: an event in the second of the connection counts as later.
    fileprivate func mayPrecede(lastConnection: Timestamp, receivedAt now: Timestamp) -> Bool {
        if let happenedAt { return lastConnection >= happenedAt + .seconds(1) }
        return lastConnection + Self.maximumDelayOfIssue >= min(issuedAt, now)
    }
}

/// The rules for the effects of Google's events.
extension SecurityEvent.Kind {

    /// Returns the effect of an event on a grant that it names.
    ///
    /// A grant whose tokens might be newer than the event is probed: only Google's own answer ends it. A hash
    /// identifies the stored token itself, so it is trusted at any time. 16 characters are not enough proof to delete a
    /// token. A grant is not suspended until Google has responded, because its user might have connected a moment ago.
    fileprivate func action(on grant: Grant, mayBeOlder: Bool) -> SecurityEventApplier.GrantAction {
        switch self {
        case .tokenRevoked(.doubleHash): .disconnect(.tokenRevoked)
        case .tokenRevoked(.prefix): mayBeOlder ? .probe : .disconnect(.tokenRevoked)
        case .tokensRevoked: mayBeOlder ? .probe : .disconnect(.tokensRevoked)
        case .accountDisabled where grant.state.endsRefreshes: .ignore
        case .accountDisabled: mayBeOlder ? .probe : .suspend(.accountDisabled)
        case .accountEnabled: grant.state.endsRefreshes ? .ignore : .probe
        case .sessionsRevoked, .credentialChangeRequired, .verification, .other: .ignore
        }
    }

    /// `true` if the app's own sessions of the account end.
    ///
    /// All of them end, even those that began after the event: one unnecessary sign-in does less harm than an
    /// attacker's session that continues.
    fileprivate var endsSessions: Bool {
        switch self {
        case .sessionsRevoked, .accountDisabled: true
        default: false
        }
    }

    /// `true` if the event is only recorded.
    fileprivate var isOnlyRecorded: Bool {
        switch self {
        case .credentialChangeRequired, .verification, .other: true
        default: false
        }
    }
}
