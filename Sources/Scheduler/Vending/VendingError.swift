package import Base
package import Crypto
package import Storage

/// The reason why a caller gets no token.
package enum VendingError: Error, Hashable, Sendable {
    case unknownGrant
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
