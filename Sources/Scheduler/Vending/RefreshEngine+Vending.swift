import Base
package import Crypto
package import Storage
import Telemetry

/// Vending of tokens: a stored one at once, or a fresh one from a refresh that all callers share.
extension RefreshEngine {
    /// The time that a caller waits for a refresh, by this worker or another.
    private static let callerTimeout: Duration = .seconds(25)
    /// The interval at which another worker's lease is checked.
    private static let leaseCheckInterval: Duration = .milliseconds(100)

    /// Returns a grant's access token with at least `minimumLife` left, after a refresh if necessary. If Google has
    /// refused a token, it returns another one: the stored one if it differs, else a fresh one.
    package func freshToken(
        of id: GrantID,
        minimumLife: Duration = .zero,
        insteadOf rejected: Secret? = nil
    ) async throws -> VendedToken {
        let request = VendRequest(
            minimumLife: minimumLife,
            rejected: rejected,
            end: time.sinceBoot + Self.callerTimeout
        )
        var isAfterRefresh = false
        var lastReason = VendReason.timeout.rawValue
        while time.sinceBoot < request.end {
            let grant = try await storedGrant(id)
            if let token = try storedToken(of: grant, for: request, isAfterRefresh: isAfterRefresh) { return token }
            if let reason = reasonNotToRefresh(grant) {
                return try serveOldToken(of: grant, insteadOf: rejected, reason: reason)
            }
            switch try await refresh(grant, for: request) {
            case .refreshed: isAfterRefresh = true
            case .changed: break
            case .handledElsewhere: lastReason = VendReason.claimedElsewhere.rawValue
            case .refreshedElsewhere:
                isAfterRefresh = true
                lastReason = VendReason.claimedElsewhere.rawValue
            case .failed(let grant, let reason):
                return try serveOldToken(of: grant, insteadOf: rejected, reason: reason)
            }
        }
        return try serveOldToken(of: try await storedGrant(id), insteadOf: rejected, reason: lastReason)
    }

    /// What a caller asks for.
    private struct VendRequest {
        let minimumLife: Duration
        /// The token that Google has refused.
        let rejected: Secret?
        let end: BootInstant
    }

    /// What a refresh for a caller has led to. After all but ``failed(_:reason:)`` the stored grant is read again.
    private enum RefreshForCaller {
        case refreshed
        /// The grant was changed, or has ended.
        case changed
        case handledElsewhere
        case refreshedElsewhere
        case failed(Grant, reason: String)
    }

    /// Returns the stored token if it is good enough, or `nil` if a refresh is necessary.
    private func storedToken(
        of grant: Grant,
        for request: VendRequest,
        isAfterRefresh: Bool
    ) throws -> VendedToken? {
        let decision: VendDecision
        if isAfterRefresh {
            // Any live token is the best available, even if more life was asked for than Google gives.
            decision = .make(for: grant, minimumLife: .zero, at: time.now)
        } else if let rejected = request.rejected {
            decision = .make(for: grant, storesRejectedToken: try stores(rejected, in: grant), at: time.now)
        } else {
            decision = .make(for: grant, minimumLife: request.minimumLife, at: time.now)
        }
        switch decision {
        case .serve:
            // The token endpoint can return the rejected token again.
            try refuse(request.rejected, from: grant, reason: VendReason.tokenNotReplaced.rawValue)
            return try VendedToken(of: grant, vault: dispatcher.vault, isFresh: isAfterRefresh)
        case .refuse: throw VendingError.refused(grant)
        case .wait(let span): throw VendingError.tooSoon(wait: span)
        case .refresh: return nil
        }
    }

    /// Refreshes the grant, or waits while another worker does.
    private func refresh(_ grant: Grant, for request: VendRequest) async throws -> RefreshForCaller {
        let span = log.spans?.begin("refresh", .client)
        let completion = await refreshForCaller(grant, until: request.end).value
        endSpan(span, of: grant, completion: completion)
        switch completion {
        case .committed(let result, let stored):
            if case .unreadable(let error) = result.answer { throw VendingError.unreadable(error) }
            if let failed = stored.decision.grantThatFailed {
                return .failed(failed, reason: failed.code(after: result))
            }
            return stored.decision.isRefreshed ? .refreshed : .changed
        case .handledElsewhere:
            guard let current = try await waitForOtherWorker(grant, until: request.end) else {
                return .handledElsewhere
            }
            if current.failures > grant.failures { return .failed(current, reason: current.reason.rawValue) }
            return current.accessToken == grant.accessToken ? .handledElsewhere : .refreshedElsewhere
        case .refused(let reason): return .failed(grant, reason: reason.rawValue)
        case .abandoned, .deferred: return .failed(grant, reason: VendReason.notSent.rawValue)
        }
    }

    /// Ends the span of a caller that waited for a refresh. Callers that share one each have a span.
    private func endSpan(_ span: SpanBuffer.Open?, of grant: Grant, completion: RefreshCompletion) {
        guard let span else { return }
        let attributes = [
            Span.Attribute("refresh_worker.grant", grant.id.description),
            Span.Attribute("refresh_worker.outcome", completion.outcome),
        ]
        log.spans?.end(span, attributes: attributes, hasFailed: !completion.isRefreshed)
    }

    private func storedGrant(_ id: GrantID) async throws -> Grant {
        guard let grant = try await store.grant(id) else { throw VendingError.unknownGrant }
        return grant
    }

    /// Returns why a grant is not refreshed again so soon, or `nil` if it can be.
    private func reasonNotToRefresh(_ grant: Grant) -> String? {
        // Joining a refresh in flight costs nothing, so no pause applies to it.
        guard state.slots[grant.id] == nil else { return nil }
        if VendDecision.hasJustFailed(grant, at: time.now) { return grant.reason.rawValue }
        if VendDecision.isRefreshedTooOften(grant, at: time.now) { return VendReason.refreshedTooOften.rawValue }
        return nil
    }

    /// `true` if a token is the stored one. The comparison takes constant time.
    private func stores(_ token: Secret, in grant: Grant) throws(VendingError) -> Bool {
        do throws(CryptoError) {
            return try dispatcher.vault.openAccessToken(of: grant) == token
        } catch {
            throw .unreadable(error)
        }
    }

    /// Throws if the stored token is the one that the caller rejected.
    private func refuse(_ rejected: Secret?, from grant: Grant, reason: String) throws {
        guard let rejected, try stores(rejected, in: grant) else { return }
        throw VendingError.unavailable(reason: reason)
    }

    /// Returns the old token with a warning while refreshing fails, if it is live and not the rejected one.
    private func serveOldToken(of grant: Grant, insteadOf rejected: Secret?, reason: String) throws -> VendedToken {
        guard VendDecision.remainingLife(of: grant, at: time.now) != nil else {
            throw VendingError.unavailable(reason: reason)
        }
        try refuse(rejected, from: grant, reason: reason)
        return try VendedToken(of: grant, vault: dispatcher.vault, warning: reason)
    }

    /// Sends one grant for a caller. All callers during that time share the refresh, including its wait for the
    /// client's pace.
    private func refreshForCaller(_ grant: Grant, until end: BootInstant) -> CompletionSignal {
        let (request, completions) = state.reserve([grant.id], dueBy: nil, seen: grant)
        guard let completion = completions.first else { preconditionFailure("a reservation without its completion") }
        guard !request.ids.isEmpty else { return completion }
        Task {
            do {
                if let reason = try await reasonNotToSend(toRefreshing: grant, until: end) {
                    execute(state.freeSlots(of: request.ids, as: .refused(reason)))
                } else {
                    _ = await claim(request)
                }
            } catch {
                reportStoreFailure(error, waiting: 1)
                execute(state.freeSlots(of: request.ids, as: .abandoned))
            }
        }
        return completion
    }

    /// Waits for the client's pace, and returns `nil` once a caller's refresh can be sent, or the reason why it cannot.
    ///
    /// The stored health of the client, which other workers share, counts too: a command is a process of its own and
    /// has seen no answer yet.
    private func reasonNotToSend(toRefreshing grant: Grant, until end: BootInstant) async throws -> VendReason? {
        let client = grant.clientID
        try await readSharedClock()
        let stored = try await store.clientHealth()[client]
        state.updateHealth(stored, of: client)
        if state.waitsForFirstSuccess(grant) { return .breakerOpen }
        while true {
            switch state.permitCaller(of: client, until: end, under: conditions) {
            case .send, .waitForSlot: return nil
            case .askForProbe: return await beginProbe(client) ? nil : .breakerOpen
            // In short waits, so that a stop is noticed soon.
            case .wait(let span): try await time.sleep(for: min(span, .seconds(1)))
            case .refuse(let reason): return reason
            }
        }
    }

    /// Waits while another worker has the grant, and returns the grant as that worker left it.
    private func waitForOtherWorker(_ grant: Grant, until end: BootInstant) async throws -> Grant? {
        var current: Grant?
        while time.sinceBoot < end {
            try await time.sleep(for: Self.leaseCheckInterval)
            current = try await store.grant(grant.id)
            guard let lease = current?.lease, lease.isLive(at: try await store.leaseTime()) else { break }
        }
        return current
    }
}

extension RefreshDecision {
    /// The grant if its refresh failed and can succeed later.
    fileprivate var grantThatFailed: Grant? {
        guard !isRefreshed, !isVoid, let grant, grant.state.isConnected else { return nil }
        return grant
    }
}

extension RefreshCompletion {
    fileprivate var isRefreshed: Bool {
        switch self {
        case .committed(_, let stored): stored.decision.isRefreshed
        // The caller goes on with what the other worker does.
        case .handledElsewhere: true
        case .abandoned, .deferred, .refused: false
        }
    }

    /// The outcome as spans have it.
    fileprivate var outcome: String {
        switch self {
        case .committed(let result, let stored): stored.decision.isRefreshed ? "refreshed" : result.code
        case .handledElsewhere: VendReason.claimedElsewhere.rawValue
        case .abandoned, .deferred: VendReason.notSent.rawValue
        case .refused(let reason): reason.rawValue
        }
    }
}

extension Grant {
    /// The code that a caller gets after a refresh that failed. A refusal in doubt has not ended the grant, so its own
    /// code would say too much.
    fileprivate func code(after result: RefreshResult) -> String {
        awaitsConfirmation ? reason.rawValue : result.code
    }
}
