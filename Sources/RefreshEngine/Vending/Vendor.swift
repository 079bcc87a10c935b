package import Clocks
package import Secrets
package import Store

/// The one way to a user's access token for whoever asks: a stored one at once, else by the engine.
///
/// A token that lives long enough costs one read of the store and one unsealing, and nothing waits for the engine.
package struct Vendor: Sendable {
    /// A caller that asks for nearly the whole life of a token would have each answer refreshed.
    private static let greatestShareOfLife = 0.8

    /// Reads a user's grant on the thread of whoever asks, without waiting for anybody; `nil` where the store has to be asked.
    package typealias PromptRead = @Sendable (_ userID: String) throws -> Grant?

    private let store: any GrantStore
    private let promptRead: PromptRead
    private let vault: TokenVault
    private let engine: RefreshEngine
    private let time: any TimeSource

    /// Without a `promptRead` every answer takes its way through the store's queue.
    package init(
        store: any GrantStore,
        promptRead: @escaping PromptRead = { _ in nil },
        vault: TokenVault,
        engine: RefreshEngine,
        time: any TimeSource
    ) {
        self.store = store
        self.promptRead = promptRead
        self.vault = vault
        self.engine = engine
        self.time = time
    }

    /// The grant to vend from, as it is stored now.
    package func grant(ofUser userID: String) async throws -> Grant? {
        try await store.grant(ofUser: userID)
    }

    /// The grant to vend from, where it can be read at once.
    package func promptGrant(ofUser userID: String) throws -> Grant? {
        try promptRead(userID)
    }

    /// Gives the stored access token of a grant that was just read, if at least `minimumLife` is left of it.
    package func storedToken(of grant: Grant, minimumLife: Duration) throws -> VendedToken? {
        let wanted = Self.reasonable(minimumLife, of: grant)
        guard VendDecision.make(for: grant, minimumLife: wanted, at: time.now) == .serve else { return nil }
        return try VendedToken(of: grant, vault: vault)
    }

    /// Gives the access token of a grant that was just read, refreshing it if less than `minimumLife` is left of it.
    ///
    /// No more is ever asked for than four fifths of what the stored token had at its birth.
    package func token(of grant: Grant, minimumLife: Duration) async throws -> VendedToken {
        let wanted = Self.reasonable(minimumLife, of: grant)
        switch VendDecision.make(for: grant, minimumLife: wanted, at: time.now) {
        case .serve: return try VendedToken(of: grant, vault: vault)
        case .refuse: throw VendFailure.refused(grant)
        case .refresh: return try await engine.freshToken(of: grant.userID, minimumLife: wanted)
        }
    }

    /// Gives another access token in place of one that Google did not take.
    ///
    /// Of all who ask at once, one refresh is made; of one grant, at most one in ``RenewalDecision/pause``.
    package func renewedToken(of grant: Grant, insteadOf rejected: Secret) async throws -> VendedToken {
        try await engine.renewedToken(of: grant.userID, insteadOf: rejected)
    }

    private static func reasonable(_ minimumLife: Duration, of grant: Grant) -> Duration {
        guard let token = grant.accessToken else { return minimumLife }
        return min(minimumLife, (token.expiresAt - token.obtainedAt) * greatestShareOfLife)
    }
}
