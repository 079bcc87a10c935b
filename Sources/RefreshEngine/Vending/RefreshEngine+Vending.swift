package import Clocks
import Observability
import Scheduler
package import Secrets
package import Store

/// A token for a caller.
package struct VendedToken: Sendable {
    package var accessToken: Secret
    package var type: String
    package var expiresAt: Timestamp
    package var scope: String
    /// Why the token is older than was asked for, when it is.
    package var warning: String?
}

/// Why there is no token for a caller.
package enum VendFailure: Error, Hashable, Sendable {
    case unknownUser
    /// The user, or an administrator, must act.
    case refused(state: GrantState, reason: GrantReason, since: Timestamp)
    /// Google cannot be reached, or not yet again, and the stored token has expired.
    case unavailable(reason: String)
    /// The stored token cannot be opened with the key ring.
    case unreadable(SealError)
}

/// Handing tokens out: a stored one at once, a fresh one by the flight that everybody shares.
extension RefreshEngine {
    /// How long a caller waits for a refresh, its own or another worker's.
    private static let patience: Duration = .seconds(25)
    /// How often another worker's lease is looked at.
    private static let glance: Duration = .milliseconds(100)

    /// Gives the user's access token with at least `minimumLife` to live, refreshing it if need be.
    package func freshToken(of userID: String, minimumLife: Duration) async throws -> VendedToken {
        let end = time.sinceBoot + Self.patience
        var isAfterRefresh = false
        var reason = "timeout"
        while time.sinceBoot < end {
            guard let grant = try await store.grant(ofUser: userID) else { throw VendFailure.unknownUser }
            // After a refresh whatever lives is the best there is, even if more life was asked for than Google gives.
            let wanted = isAfterRefresh ? .zero : minimumLife
            switch VendDecision.make(for: grant, minimumLife: wanted, at: time.now) {
            case .serve:
                return try open(grant)
            case .refuse:
                throw VendFailure.refused(state: grant.state, reason: grant.reason, since: grant.since)
            case .refresh:
                break
            }
            switch await launchForCaller(grant, until: end).end {
            case .settled(let settled) where settled.ruling.outcome == .refreshed:
                isAfterRefresh = true
            case .settled(let settled):
                if case .unreadable(let error) = settled.finding.answer { throw VendFailure.unreadable(error) }
                guard settled.ruling.outcome != .void, let grant = settled.grant, grant.state.isConnected else {
                    continue
                }
                return try serveOldToken(of: grant, reason: settled.finding.code)
            case .elsewhere:
                reason = "claimed_elsewhere"
                guard let current = try await waitForOthers(grant, until: end) else { continue }
                isAfterRefresh = isAfterRefresh || current.accessToken != grant.accessToken
                guard current.attempts <= grant.attempts else {
                    return try serveOldToken(of: current, reason: current.reason.rawValue)
                }
            case .objected(let reason):
                return try serveOldToken(of: grant, reason: reason)
            case .abandoned:
                return try serveOldToken(of: grant, reason: "not_sent")
            }
        }
        guard let grant = try await store.grant(ofUser: userID) else { throw VendFailure.unknownUser }
        return try serveOldToken(of: grant, reason: reason)
    }

    private func open(_ grant: Grant, warning: String? = nil) throws -> VendedToken {
        let opened: Secret?
        do throws(SealError) {
            opened = try courier.vault.openAccessToken(of: grant)
        } catch {
            throw VendFailure.unreadable(error)
        }
        guard let stored = grant.accessToken, let opened else {
            throw VendFailure.unavailable(reason: "no_access_token")
        }
        return VendedToken(
            accessToken: opened,
            type: stored.type,
            expiresAt: stored.expiresAt,
            scope: grant.scope,
            warning: warning
        )
    }

    /// A token that still lives is served with a warning while refreshing fails.
    private func serveOldToken(of grant: Grant, reason: String) throws -> VendedToken {
        guard VendDecision.remainingLife(of: grant, at: time.now) != nil else {
            throw VendFailure.unavailable(reason: reason)
        }
        return try open(grant, warning: reason)
    }

    /// Sends one grant for a caller.
    ///
    /// All who ask meanwhile share the flight, its wait for the client's pace included.
    private func launchForCaller(_ grant: Grant, until end: BootInstant) -> Landing {
        if let slot = flights[grant.id] { return slot.landing }
        let slot = FlightSlot()
        flights[grant.id] = slot
        Task {
            do {
                if let reason = try await objection(toRefreshing: grant, until: end) {
                    land(grant.id, as: .objected(reason))
                } else {
                    await claimAndSend([grant.id], dueBy: nil)
                }
            } catch {
                log.storeTrouble(error, waiting: 1)
                land(grant.id, as: .abandoned)
            }
        }
        return slot.landing
    }

    /// Why a caller's refresh may not go out now; `nil` when it may.
    ///
    /// What other workers learnt of the client counts too: a command is a process of its own and has seen no answer yet.
    private func objection(toRefreshing grant: Grant, until end: BootInstant) async throws -> String? {
        let client = grant.clientID
        let epoch = try await store.leaseTime().epoch
        let stored = try await store.clientHealth()[client]
        gate(of: client) { $0.learn(ClientHealth(stored: stored, epoch: epoch)) }
        while true {
            guard !isStopping else { return "stopping" }
            let instant = time.sinceBoot
            switch gates[client]?.health.breaker.permits(at: instant) {
            case .wait: return "breaker_open"
            case .probeDue: return await beginProbe(client) ? nil : "breaker_open"
            case .all, nil: break
            }
            if gates[client]?.pacer.take(upTo: 1, at: instant) == 1 { return nil }
            let wait = max(gates[client]?.pacer.nextAvailable(at: instant) ?? .zero, .milliseconds(1))
            guard instant + wait < end else { return "throttled" }
            try await Task.sleep(for: wait)
        }
    }

    /// Waits while another worker has the grant; answers the grant as that worker left it.
    private func waitForOthers(_ grant: Grant, until end: BootInstant) async throws -> Grant? {
        var current: Grant?
        while time.sinceBoot < end {
            try await Task.sleep(for: Self.glance)
            current = try await store.grant(grant.id)
            guard let lease = current?.lease, lease.isLive(at: try await store.leaseTime()) else { break }
        }
        return current
    }
}

extension RefreshEngine {
    /// Tells Google of a disconnection that was asked for; answers whether that is done, or was done before.
    package func finishRevocation(of userID: String) async throws -> Bool {
        guard let grant = try await store.grant(ofUser: userID), grant.revocationAskedAt != nil else { return true }
        _ = await launch([grant.id], dueBy: nil).first?.end
        return try await store.grant(grant.id)?.revocationAskedAt == nil
    }
}
