package import Clocks
package import Secrets
package import Store

/// The one way to a user's access token for whoever asks: a stored one at once, else by the engine.
///
/// A token that lives long enough costs one read of the store and one unsealing, and nothing waits for the engine.
package struct Vendor: Sendable {
    /// A caller that asks for nearly the whole life of a token would have each answer refreshed.
    private static let greatestShareOfLife = 0.8

    private let store: any GrantStore
    private let vault: TokenVault
    private let engine: RefreshEngine
    private let time: any TimeSource

    package init(store: any GrantStore, vault: TokenVault, engine: RefreshEngine, time: any TimeSource) {
        self.store = store
        self.vault = vault
        self.engine = engine
        self.time = time
    }

    /// The grant to vend from, as it is stored now.
    package func grant(ofUser userID: String) async throws -> Grant? {
        try await store.grant(ofUser: userID)
    }

    /// Gives the access token of a grant that was just read, refreshing it if less than `minimumLife` is left of it.
    ///
    /// No more is ever asked for than four fifths of what the stored token had at its birth.
    package func token(of grant: Grant, minimumLife: Duration) async throws -> VendedToken {
        let wanted = min(minimumLife, Self.greatestDemand(on: grant) ?? minimumLife)
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

    private static func greatestDemand(on grant: Grant) -> Duration? {
        grant.accessToken.map { ($0.expiresAt - $0.obtainedAt) * greatestShareOfLife }
    }
}
