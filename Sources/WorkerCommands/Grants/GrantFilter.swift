import Clocks
import Store
import WorkerConfiguration

/// The grants that `grants list` shows.
struct GrantFilter: Sendable {
    let state: GrantState?
    let reason: GrantReason?
    let clientID: String?
    let isExpired: Bool

    init(_ options: GrantListOptions) {
        state = options.state.flatMap { GrantState(rawValue: $0) }
        reason = options.reason.map { GrantReason(rawValue: $0) }
        clientID = options.clientID
        isExpired = options.isExpired
    }

    var selectsAll: Bool { state == nil && reason == nil && clientID == nil && !isExpired }

    func matches(_ grant: Grant, at now: Timestamp) -> Bool {
        (state == nil || grant.state == state) && (reason == nil || grant.reason == reason)
            && (clientID == nil || grant.clientID == clientID) && (!isExpired || grant.isExpired(at: now))
    }
}

extension Grant {
    /// `true` if the grant is connected and has no valid access token, as `ExpiredGrants` counts it.
    fileprivate func isExpired(at now: Timestamp) -> Bool {
        state.isConnected && (accessToken?.expiresAt ?? since) <= now
    }
}
