package import Base
package import Crypto
package import Storage

/// The only way for callers to get a user's access token: a stored one at once, else through the engine.
///
/// A token with enough life left costs one read of the store and one unsealing, and does not wait for the engine.
///
///     guard let grant = try await provider.grant(ofUser: userID) else { throw VendingError.unknownUser }
///     let token = try await provider.token(of: grant, minimumLife: .seconds(300))
///     // Google has refused it:
///     let other = try await provider.renewedToken(of: grant, insteadOf: token.accessToken)
package struct TokenProvider: Sendable {
    /// The largest part of a token's life that a caller can demand: a higher demand would refresh on each call.
    private static let maximumPartOfLife = 0.8

    /// Reads a user's grant on the caller's thread, without waiting, or returns `nil` if the store has to be asked.
    package typealias ImmediateRead = @Sendable (_ userID: String) throws -> Grant?

    private let engine: RefreshEngine
    private let immediateRead: ImmediateRead
    private var store: any Store { engine.store }
    private var vault: TokenVault { engine.dispatcher.vault }
    private var time: any TimeSource { engine.time }

    /// Creates a provider. Without a `immediateRead` every call goes through the store's queue.
    package init(engine: RefreshEngine, immediateRead: @escaping ImmediateRead = { _ in nil }) {
        self.engine = engine
        self.immediateRead = immediateRead
    }

    /// Returns the stored grant to vend from.
    package func grant(ofUser userID: String) async throws -> Grant? { try await store.grant(ofUser: userID) }

    /// Returns the grant to vend from, if it can be read without waiting.
    package func immediateGrant(ofUser userID: String) throws -> Grant? { try immediateRead(userID) }

    /// Returns the stored access token of a grant that was just read, if it has at least `minimumLife` left.
    package func storedToken(of grant: Grant, minimumLife: Duration) throws -> VendedToken? {
        let wanted = Self.reasonable(minimumLife, of: grant)
        guard VendDecision.make(for: grant, minimumLife: wanted, at: time.now) == .serve else { return nil }
        return try VendedToken(of: grant, vault: vault)
    }

    /// Returns the access token of a grant that was just read, after a refresh if less than `minimumLife` is left. The
    /// demand is limited to four fifths of the life that the stored token had when it was issued.
    package func token(of grant: Grant, minimumLife: Duration) async throws -> VendedToken {
        let wanted = Self.reasonable(minimumLife, of: grant)
        switch VendDecision.make(for: grant, minimumLife: wanted, at: time.now) {
        case .serve: return try VendedToken(of: grant, vault: vault)
        case .refuse: throw VendingError.refused(grant)
        case .refresh, .wait: return try await engine.freshToken(of: grant.userID, minimumLife: wanted)
        }
    }

    /// Returns the remaining time in which a wave can still undo the end of a user's grant, or `nil` if none can. Only
    /// the first refusal of a grant is undone, and only if no user, operator or event ended the grant too.
    package func recallTimeLeft(ofUser userID: String) async throws -> Duration? {
        guard let grant = try await store.grant(ofUser: userID), grant.canBeRecalled else { return nil }
        guard time.now - grant.since < ClientHealth.recallSpan else { return nil }
        let stored = try await store.clientHealth()[grant.clientID]
        return ClientHealth(stored: stored, epoch: "").recallTimeLeft(of: grant.id, at: time.now)
    }

    /// Returns another access token to replace one that Google refused. Simultaneous calls share one refresh, and one
    /// grant gets at most one per ``VendDecision/pause``.
    package func renewedToken(of grant: Grant, insteadOf rejected: Secret) async throws -> VendedToken {
        try await engine.freshToken(of: grant.userID, insteadOf: rejected)
    }

    private static func reasonable(_ minimumLife: Duration, of grant: Grant) -> Duration {
        guard let token = grant.accessToken else { return minimumLife }
        return min(minimumLife, (token.expiresAt - token.obtainedAt) * maximumPartOfLife)
    }
}

/// A token for a caller.
package struct VendedToken: Sendable {
    package var accessToken: Secret
    package var type: String
    package var expiresAt: Timestamp
    package var scope: String
    /// `true` if the caller waited for a refresh that brought this token.
    package var isFresh: Bool
    /// The code of the failure that keeps the grant from being refreshed, or `nil` while its refreshes succeed.
    package var warning: String?
}

extension VendedToken {
    /// Opens the stored access token of a grant. If the grant is in `retrying`, its reason becomes the warning.
    init(of grant: Grant, vault: TokenVault, isFresh: Bool = false, warning: String? = nil) throws(VendingError) {
        let opened: Secret?
        do throws(CryptoError) {
            opened = try vault.openAccessToken(of: grant)
        } catch {
            if case .unknownKey = error, !vault.ring.isComplete { throw .unavailable(for: .keyRing) }
            throw .unreadable(error)
        }
        guard let stored = grant.accessToken, let opened else { throw .unavailable(for: .noAccessToken) }
        self.init(
            accessToken: opened,
            type: stored.type,
            expiresAt: stored.expiresAt,
            scope: grant.scope,
            isFresh: isFresh,
            warning: warning ?? (grant.state == .retrying ? grant.reason.rawValue : nil)
        )
    }
}

/// The reason why a caller gets no token.
package enum VendingError: Error, Hashable, Sendable {
    case unknownUser
    /// The user, or an administrator, must act.
    case refused(state: GrantState, reason: GrantReason, since: Timestamp)
    /// Google cannot be reached, or not yet again, and the stored token has expired.
    case unavailable(reason: String)
    /// The caller rejects a token that was issued just before. It can ask again after `wait`.
    case tooSoon(wait: Duration)
    /// The stored token cannot be opened with the key ring.
    case unreadable(CryptoError)
}

extension VendingError {
    static func unavailable(for reason: VendReason) -> VendingError { .unavailable(reason: reason.rawValue) }

    /// Returns the failure for a grant that can no longer be refreshed.
    static func refused(_ grant: Grant) -> VendingError {
        guard grant.state.isConnected else {
            return .refused(state: grant.state, reason: grant.reason, since: grant.since)
        }
        // It shows as connected until the engine handles it.
        let end = grant.accessToken?.expiresAt ?? grant.since
        return .refused(state: .reauthRequired, reason: .noRefreshToken, since: end)
    }
}

/// The reasons why a caller gets no token, or an older one, although its grant has not ended.
///
/// They appear in the fields `reason` and `warning` of answers, as do Google's error codes and the reasons of a grant
/// in `retrying`.
package enum VendReason: String, CaseIterable, Sendable {
    case timeout
    case tokenNotReplaced = "token_not_replaced"
    case refreshedTooOften = "refreshed_too_often"
    case justTried = "just_tried"
    case claimedElsewhere = "claimed_elsewhere"
    case notSent = "not_sent"
    case stopping
    case storeFailing = "store_failing"
    case breakerOpen = "breaker_open"
    case throttled
    case keyRing = "key_ring"
    case noAccessToken = "no_access_token"
}

/// The decision for a caller that wants a grant's access token: pure, from the grant as stored.
enum VendDecision: Hashable, Sendable {
    /// The stored token has enough life left.
    case serve
    /// A refresh is necessary.
    case refresh
    /// The last attempt has only just ended: a caller that gets a 401 each time must not cause a call to Google each
    /// time.
    case wait(Duration)
    /// A refresh is not possible: the user, or an administrator, must act.
    case refuse

    /// The tolerated lead of a token's issue time over the clock. Beyond it the token's expiry is not trusted.
    private static let tolerance: Duration = .seconds(5)

    static func make(for grant: Grant, minimumLife: Duration, at now: Timestamp) -> VendDecision {
        guard grant.state.isConnected else { return .refuse }
        if let life = remainingLife(of: grant, at: now), life > max(minimumLife, .zero) { return .serve }
        guard grant.refreshToken != nil else {
            // A better token is not available: a live one is served, however short its life.
            return remainingLife(of: grant, at: now) == nil ? .refuse : .serve
        }
        return .refresh
    }

    /// Returns the remaining life of the stored access token, or `nil` if it has expired, or if a clock that was ahead
    /// stored it.
    static func remainingLife(of grant: Grant, at now: Timestamp) -> Duration? {
        guard let token = grant.accessToken, token.obtainedAt <= now + tolerance, token.expiresAt > now else {
            return nil
        }
        return token.expiresAt - now
    }

    // MARK: Tokens that Google refused

    /// The shortest interval between attempts that callers can cause for one grant.
    static let pause: Duration = .seconds(10)
    /// The interval after each quick refresh beyond those that are allowed: a caller that rejects every token must not
    /// cause six calls a minute.
    private static let slowedPause = BackOff(first: .seconds(20), maximum: .seconds(600))

    /// Decides for a caller whose token Google refused. `storesRejectedToken` is `true` if it is the stored one.
    static func make(for grant: Grant, storesRejectedToken: Bool, at now: Timestamp) -> VendDecision {
        guard grant.state.isConnected else { return .refuse }
        guard storesRejectedToken else { return make(for: grant, minimumLife: .zero, at: now) }
        guard grant.refreshToken != nil else { return .refuse }
        guard let pause = pauseLeft(of: grant, at: now) else { return .refresh }
        return .wait(pause)
    }

    /// `true` if an attempt at the grant has only just failed: repeated calls must not cause a call to Google each
    /// time, which would give the same answer.
    static func hasJustFailed(_ grant: Grant, at now: Timestamp) -> Bool {
        grant.state == .retrying && pauseLeft(of: grant, at: now) != nil
    }

    /// `true` if the grant was refreshed so often that a live token is served instead of another refresh.
    static func isRefreshedTooOften(_ grant: Grant, at now: Timestamp) -> Bool {
        guard grant.quickRefreshes > DuePolicy.quickRefreshesAllowed else { return false }
        return pauseLeft(of: grant, at: now) != nil && remainingLife(of: grant, at: now) != nil
    }

    /// Returns the pause, which lasts as long as the lease after a request with an unknown outcome.
    private static func pause(of grant: Grant) -> Duration {
        if let lease = grant.lease, lease.isOfEndedRequest { return RefreshRules.maximumUnansweredWork }
        let excess = grant.quickRefreshes - DuePolicy.quickRefreshesAllowed
        return excess > 0 ? slowedPause.cap(failures: excess) : pause
    }

    private static func pauseLeft(of grant: Grant, at now: Timestamp) -> Duration? {
        let pause = pause(of: grant)
        // An attempt in the future was recorded before the clock was set back.
        guard let last = grant.lastAttemptAt, last <= now, now < last + pause else { return nil }
        return last + pause - now
    }
}
