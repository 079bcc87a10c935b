package import Base

/// The result of making a grant due now on an operator's request, except where an early refresh would do harm.
package enum GrantRetry: String, CaseIterable, Sendable {
    /// The grant is due now.
    case due
    /// A worker holds the grant's lease: it is being refreshed.
    case inFlight = "in_flight"
    /// A refusal of the grant waits for its confirmation, which must not come early.
    case awaitingConfirmation = "awaiting_confirmation"
    /// A security event disabled the account, and the operator named neither the state nor the user.
    case accountDisabled = "account_disabled"
    /// There is no refresh token to try.
    case noRefreshToken = "no_refresh_token"
    /// The user must sign in again.
    case ended

    /// Makes the grant due now if that does no harm, within the caller's transaction. `includesDisabledAccounts` is
    /// `true` if the operator named the user, or the state `suspended`.
    package static func retry(
        _ grant: Grant,
        includesDisabledAccounts: Bool,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> GrantRetry {
        let outcome = outcome(for: grant, includesDisabledAccounts: includesDisabledAccounts, at: transaction.leaseTime)
        guard outcome == .due else { return outcome }
        var grant = grant
        if let dueAt = grant.dueAt { grant.reschedule(to: min(dueAt, now)) }
        try transaction.update(grant)
        return .due
    }

    /// Makes a user's grant due now, or returns `nil` if there is none.
    package static func retry(
        grantOfUser user: String,
        connection: ConnectionID,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> (grant: Grant, result: GrantRetry)? {
        guard let grant = try transaction.grant(ofUser: user, connection: connection) else { return nil }
        return (grant, try retry(grant, includesDisabledAccounts: true, in: transaction, at: now))
    }

    /// Returns the result for a grant as it is stored.
    static func outcome(for grant: Grant, includesDisabledAccounts: Bool, at leaseTime: LeaseTime) -> GrantRetry {
        if grant.state.endsRefreshes { return .ended }
        if let lease = grant.lease, lease.isLive(at: leaseTime) { return .inFlight }
        if grant.refreshToken == nil { return .noRefreshToken }
        if grant.isInDoubt { return .awaitingConfirmation }
        if grant.reason == .accountDisabled && !includesDisabledAccounts { return .accountDisabled }
        return .due
    }
}
