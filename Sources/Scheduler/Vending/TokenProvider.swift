import Base
package import Crypto
package import Storage

/// The only way for callers to get a user's access token: a stored one at once, else through the engine.
///
/// A token with enough life left costs one read of the store and one unsealing, and does not wait for the engine.
///
///     guard let grant = try await provider.grant(ofUser: userID, connection: .default) else { … }
///     let token = try await provider.token(of: grant, minimumLife: .seconds(300))
///     // Google has refused it:
///     let other = try await provider.renewedToken(of: grant, insteadOf: token.accessToken)
package struct TokenProvider: Sendable {
    /// The largest part of a token's life that a caller can demand: a higher demand would refresh on each call.
    private static let maximumPartOfLife = 0.8

    /// Reads a grant on the caller's thread, without waiting, or returns `nil` if the store has to be asked.
    package typealias ImmediateRead = @Sendable (_ userID: String, _ connection: ConnectionID) throws -> Grant?

    private let engine: RefreshEngine
    private let immediateRead: ImmediateRead
    private var store: any Store { engine.store }
    private var vault: TokenVault { engine.dispatcher.vault }
    private var time: any TimeSource { engine.time }

    /// Creates a provider. Without a `immediateRead` every call goes through the store's queue.
    package init(engine: RefreshEngine, immediateRead: @escaping ImmediateRead = { _, _ in nil }) {
        self.engine = engine
        self.immediateRead = immediateRead
    }

    /// Returns the stored grant to vend from.
    package func grant(ofUser userID: String, connection: ConnectionID) async throws -> Grant? {
        try await store.grant(ofUser: userID, connection: connection)
    }

    /// Returns the grant to vend from, if it can be read without waiting.
    package func immediateGrant(ofUser userID: String, connection: ConnectionID) throws -> Grant? {
        try immediateRead(userID, connection)
    }

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
        case .refresh, .wait: return try await engine.freshToken(of: grant.id, minimumLife: wanted)
        }
    }

    /// Returns the remaining time in which a wave can still undo the end of a grant, or `nil` if none can. Only
    /// the first refusal of a grant is undone, and only if no user, operator or event ended the grant too.
    package func recallTimeLeft(of id: GrantID) async throws -> Duration? {
        guard let grant = try await store.grant(id), grant.canBeRecalled else { return nil }
        guard time.now - grant.since < ClientHealth.recallSpan else { return nil }
        let stored = try await store.clientHealth()[grant.clientID]
        return ClientHealth(stored: stored, epoch: "").recallTimeLeft(of: grant.id, at: time.now)
    }

    /// Returns another access token to replace one that Google refused. Simultaneous calls share one refresh, and one
    /// grant gets at most one per ``VendDecision/minimumPause``.
    package func renewedToken(of grant: Grant, insteadOf rejected: Secret) async throws -> VendedToken {
        try await engine.freshToken(of: grant.id, insteadOf: rejected)
    }

    private static func reasonable(_ minimumLife: Duration, of grant: Grant) -> Duration {
        guard let token = grant.accessToken else { return minimumLife }
        return min(minimumLife, (token.expiresAt - token.obtainedAt) * maximumPartOfLife)
    }
}
