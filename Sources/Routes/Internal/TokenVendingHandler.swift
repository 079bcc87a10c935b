import Base
import Crypto
import HTTPServer
import Records
import Scheduler
import Storage
import Telemetry

/// Handles requests for access tokens: checks the service's permission, returns the token, and writes the audit.
struct TokenVendingHandler: Sendable {
    /// The fields of the audit's line that are known so far.
    struct Audit {
        var scopes: [ScopeName] = []
        var grant: GrantID?
        var connection = ConnectionID.default
        /// `true` if the request has the user's own token.
        var isPresent = false
    }

    let provider: TokenProvider
    let services: ServiceDirectory
    /// Verifies the tokens of users who are present.
    let appTokens: AppTokens
    let log: EngineLog
    let time: any TimeSource

    /// Returns the stored token immediately, on the caller's thread, or `nil` if ``token(for:userID:)`` must handle the
    /// request.
    ///
    /// It is allowed to wait for the disk, but never for a lock, a queue or a task.
    func immediateToken(for request: ServerRequest, userID: String) -> ServerResponse? {
        let start = time.sinceBoot
        guard let service = service(of: request) else { return nil }
        let span = beginSpan()
        var audit = Audit()
        do {
            let demands = try TokenVendingRequest(request.query)
            try permit(demands, userID: userID, for: service, audit: &audit)
            let read = try provider.immediateGrant(ofUser: userID, connection: demands.connection)
            guard let stored = read else { return nil }
            let grant = try usable(stored, demands: demands, audit: &audit)
            guard let token = try provider.storedToken(of: grant, minimumLife: demands.minimumLife) else {
                return nil
            }
            let result = deliver(token, to: service, audit: audit, forced: false, since: start)
            end(span, of: service, audit: audit, result: result)
            return response(to: result)
        } catch {
            // Nothing is recorded yet: `token(for:userID:)` reaches the same refusal and records it.
            return nil
        }
    }

    /// Returns a token that lives as long as the query asks: the stored one, or one from a refresh that all callers
    /// share.
    func token(for request: ServerRequest, userID: String) async -> ServerResponse {
        await vend(to: request, forced: false) { service, audit in
            let demands = try TokenVendingRequest(request.query)
            return try await token(of: userID, demands: demands, for: service, audit: &audit)
        }
    }

    /// Returns another token than the one in the body, which Google rejected.
    func renewedToken(for request: ServerRequest, userID: String) async -> ServerResponse {
        await vend(to: request, forced: true) { service, audit in
            let rejected = try TokenVendingRequest.rejectedToken(in: request.body)
            let demands = try TokenVendingRequest(request.query)
            try permit(demands, userID: userID, for: service, audit: &audit)
            let grant = try usable(try await grant(of: userID, demands), demands: demands, audit: &audit)
            return try await provider.renewedToken(of: grant, insteadOf: rejected)
        }
    }

    /// `true` if the request has the credential of any service, except one that gets nothing without a user's token.
    func isFromService(_ request: ServerRequest) -> Bool {
        guard let service = services.service(authenticating: request) else { return false }
        return service.users != .present
    }

    /// Returns the token of a user, after a refresh if necessary, if the service may have it.
    func token(
        of userID: String,
        demands: TokenVendingRequest,
        for service: Service,
        audit: inout Audit
    ) async throws -> VendedToken {
        try permit(demands, userID: userID, for: service, audit: &audit)
        let grant = try usable(try await grant(of: userID, demands), demands: demands, audit: &audit)
        return try await provider.token(of: grant, minimumLife: demands.minimumLife)
    }

    private func grant(of userID: String, _ demands: TokenVendingRequest) async throws -> Grant? {
        try await provider.grant(ofUser: userID, connection: demands.connection)
    }

    private func permit(
        _ demands: TokenVendingRequest,
        userID: String,
        for service: Service,
        audit: inout Audit
    ) throws(ServiceError) {
        audit.scopes = demands.scopes
        audit.connection = demands.connection
        // Before the store is read, so that a service does not learn anything about other users.
        let refusal = service.refusal(forUser: userID, isPresent: audit.isPresent, demands: demands)
        if let refusal { throw refusal }
    }

    private func usable(
        _ stored: Grant?,
        demands: TokenVendingRequest,
        audit: inout Audit
    ) throws(ServiceError) -> Grant {
        guard let grant = stored, grant.reason != .userDeleted else { throw .noGrant }
        audit.grant = grant.id
        guard grant.state.isConnected else {
            throw .mustAct(state: grant.state, reason: grant.reason, since: grant.since)
        }
        let missing = ScopeName.missing(demands.scopes, in: grant.scope)
        guard missing.isEmpty else { throw .missingScopes(missing) }
        return grant
    }

    /// Vends to the service of the request's credential.
    private func vend(
        to request: ServerRequest,
        forced: Bool,
        _ body: (Service, inout Audit) async throws -> VendedToken
    ) async -> ServerResponse {
        let start = time.sinceBoot
        guard let service = service(of: request) else { return refusedStranger(request, since: start).response }
        let result = await vend(to: service, requestID: request.id, forced: forced, since: start) { audit in
            try await body(service, &audit)
        }
        return response(to: result)
    }

    /// Returns the token of `body` once the audit's line is recorded. A refusal is recorded too.
    func vend(
        to service: Service,
        requestID: String,
        forced: Bool,
        since start: BootInstant,
        _ body: (inout Audit) async throws -> VendedToken
    ) async -> Result<VendedToken, ServiceError> {
        let span = beginSpan()
        var audit = Audit()
        var context = TraceContext.current
        if let span { context = span.context }
        let result = await TraceContext.$current.withValue(context) {
            await vend(to: service, requestID: requestID, forced: forced, since: start, audit: &audit, body)
        }
        end(span, of: service, audit: audit, result: result)
        return result
    }

    private func vend(
        to service: Service,
        requestID: String,
        forced: Bool,
        since start: BootInstant,
        audit: inout Audit,
        _ body: (inout Audit) async throws -> VendedToken
    ) async -> Result<VendedToken, ServiceError> {
        do {
            let token = try await body(&audit)
            // The refresh might have narrowed the grant.
            let missing = ScopeName.missing(audit.scopes, in: token.scope)
            guard missing.isEmpty else { throw ServiceError.missingScopes(missing) }
            return deliver(token, to: service, audit: audit, forced: forced, since: start)
        } catch {
            let refusal = ServiceError(causedBy: error)
            if refusal == .storeUnavailable {
                log.diagnostics.warning(
                    "a token could not be vended: the database failed",
                    ["request": requestID, "error": "\(error)"]
                )
            }
            _ = record(refusal.code, of: service, audit: audit, forced: forced)
            return .failure(refused(refusal, by: service, since: start))
        }
    }

    /// Returns the token once the audit's line is recorded.
    private func deliver(
        _ token: VendedToken,
        to service: Service,
        audit: Audit,
        forced: Bool,
        since start: BootInstant
    ) -> Result<VendedToken, ServiceError> {
        let outcome = token.vendingOutcome
        guard record(outcome, of: service, audit: audit, forced: forced) else {
            return .failure(refused(.auditUnavailable, by: service, since: start))
        }
        log.counters.recordVend(outcome: outcome, of: service.name, duration: time.sinceBoot - start)
        return .success(token)
    }

    /// Counts a request without a known credential, and returns the error for it.
    func refusedStranger(_ request: ServerRequest, since start: BootInstant) -> ServiceError {
        log.diagnostics.info(
            "refused a request for a token: its credential is missing or unknown",
            ["from": request.peerAddress, "request": request.id]
        )
        return refused(.unauthorized, since: start)
    }

    /// Returns the service of the request's credential. Two credentials count as none, because choosing one would be
    /// arbitrary.
    private func service(of request: ServerRequest) -> Service? {
        guard let credential = BearerToken(of: request).text else { return nil }
        return services.service(presenting: credential)
    }

    /// Writes the audit's line, and returns `false` if the line might be lost.
    private func record(_ outcome: String, of service: Service, audit: Audit, forced: Bool) -> Bool {
        log.metrics.record(
            .vend(outcome: outcome, of: service, audit: audit, forced: forced, trace: TraceContext.current)
        )
    }

    /// Counts a refusal, and returns it.
    func refused(_ refusal: ServiceError, by service: Service? = nil, since start: BootInstant) -> ServiceError {
        log.counters.recordVend(
            outcome: refusal.code,
            of: service?.name,
            isToken: false,
            duration: time.sinceBoot - start
        )
        return refusal
    }

    private func response(to result: Result<VendedToken, ServiceError>) -> ServerResponse {
        switch result {
        case .success(let token): .object(headers: [ServerResponse.noStore]) { token.write(to: &$0, at: time.now) }
        case .failure(let refusal): refusal.response
        }
    }
}

extension VendedToken {
    /// The outcome of vending the token, as the audit and the metrics have it.
    var vendingOutcome: String {
        if warning != nil { return "warning" }
        return isFresh ? "refreshed" : "served"
    }
}

extension MetricsEvent {
    /// One request of a service for an access token, whatever its outcome.
    static func vend(
        outcome: String,
        of service: Service,
        audit: TokenVendingHandler.Audit,
        forced: Bool,
        trace: TraceContext?
    ) -> MetricsEvent {
        MetricsEvent("vend") { line in
            line.text("service", service.name, "the service that asked, as in the services file")
            line.text(
                "outcome",
                outcome,
                """
                `served` (the stored token), `refreshed` (the service waited for a refresh), `warning` (the \
                stored token, while refreshes fail), else the error code of the routes `/v1/grants/…`
                """
            )
            line.text(
                "scopes",
                audit.scopes.map(\.text).joined(separator: " "),
                maximum: MetricsLine.maximumScopes,
                "the scopes that it asked for"
            )
            line.text(
                "user",
                audit.isPresent ? "present" : "named",
                "`present` (the request brought a token of a user) or `named` (an id or a handle)"
            )
            line.flag("forced", forced, "it asked for another token than the one it had")
            line.text("grant", ifAny: audit.grant?.description, "the grant, if the request came that far")
            line.connection(audit.connection)
            line.text("trace_id", ifAny: trace?.traceID.text, "the trace that the request belongs to")
        }
    }
}
