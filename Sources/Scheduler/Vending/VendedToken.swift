package import Base
package import Crypto
package import Storage

/// A token for a caller.
package struct VendedToken: Sendable {
    package var accessToken: Secret
    package var type: String
    package var expiresAt: Timestamp
    package var scope: String
    /// `true` if the caller waited for a refresh that brought this token.
    package var isFresh: Bool
    /// The code of the failure that keeps the grant from being refreshed; `nil` while its refreshes succeed.
    package var warning: String?
}

extension VendedToken {
    /// Opens the stored access token of a grant; if the grant is in `retrying`, its reason becomes the warning.
    init(of grant: Grant, vault: TokenVault, isFresh: Bool = false, warning: String? = nil) throws(VendingFailure) {
        let opened: Secret?
        do throws(SealError) {
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
package enum VendingFailure: Error, Hashable, Sendable {
    case unknownUser
    /// The user, or an administrator, must act.
    case refused(state: GrantState, reason: GrantReason, since: Timestamp)
    /// Google cannot be reached, or not yet again, and the stored token has expired.
    case unavailable(reason: String)
    /// The caller rejects a token that was issued just before; it may ask again after that time.
    case tooSoon(wait: Duration)
    /// The stored token cannot be opened with the key ring.
    case unreadable(SealError)
}

extension VendingFailure {
    static func unavailable(for reason: VendReason) -> VendingFailure {
        .unavailable(reason: reason.rawValue)
    }

    /// Returns the failure for a grant that can no longer be refreshed.
    static func refused(_ grant: Grant) -> VendingFailure {
        // A grant whose token cannot be renewed shows as connected until the engine handles it.
        grant.state.isConnected
            ? .refused(
                state: .reauthRequired,
                reason: .noRefreshToken,
                since: grant.accessToken.map(\.expiresAt) ?? grant.since
            )
            : .refused(state: grant.state, reason: grant.reason, since: grant.since)
    }
}
