import Base
import Crypto
import GoogleOAuth
import HTTPServer
import Scheduler
import Status
import Storage
import Telemetry

/// Receives the security event tokens that Google posts (Cross-Account Protection) and applies them.
///
/// It returns 202 once all events are stored, 400 if the token is invalid, and 503 if the token cannot be verified or
/// stored: Google delivers a token again until it is accepted (RFC 8935, section 2).
struct SecurityEventReceiver: Sendable {
    let verify: PublicRoutes.Verification
    let store: any Store
    let log: EngineLog
    let time: any TimeSource
    /// Called after grants have changed, so that the engine reads the due grants.
    let onChange: @Sendable () async -> Void

    var route: Route {
        Route("POST", "/v1/google/security-events") { request, _ in .respond(await response(to: request).secured) }
    }

    func response(to request: ServerRequest) async -> ServerResponse {
        do throws(SecurityEventError) {
            guard request.body.count <= SecurityEventReader.maximumBody else {
                throw .invalid(.request, "the body is longer than \(SecurityEventReader.maximumBody) bytes")
            }
            return await apply(try await verify(request.body))
        } catch {
            switch error {
            case .invalid(let code, let description): return Self.refusal(code, description: description)
            case .unavailable(let pause): return Self.unavailable(retryAfter: pause)
            }
        }
    }

    private func apply(_ token: SecurityEventToken) async -> ServerResponse {
        let now = time.now
        do {
            let applied = try await store.transact { transaction -> [AppliedSecurityEvent]? in
                guard try transaction.recordOnce(token.id, at: now) else { return nil }
                let applier = SecurityEventApplier(transaction: transaction, token: token, now: now)
                return try token.events.map { try applier.apply($0) }
            }
            report(applied, of: token)
            try await NotedTime.lastSecurityEvent.record(now, in: store)
            if let applied, applied.contains(where: { $0.grants > 0 }) { await onChange() }
            return ServerResponse(status: 202)
        } catch {
            log.reportStoreFailure(error, waiting: 1)
            return Self.unavailable(retryAfter: .seconds(5))
        }
    }

    private func report(_ applied: [AppliedSecurityEvent]?, of token: SecurityEventToken) {
        // The logs must not contain the id itself.
        let name = Hexadecimal.encode(Digest.sha256(Array(token.id.utf8)).prefix(8))
        guard let applied else {
            log.metrics.record(.securityEvent(AppliedSecurityEvent(kind: "token", outcome: .repeated), token: name))
            return
        }
        for event in applied {
            // Once, even if the event is delivered several times.
            log.counters.recordSecurityEvent(kind: event.kind)
            log.metrics.record(.securityEvent(event, token: name))
            for change in event.changes { log.state(change) }
        }
    }

    /// Returns the error response of RFC 8935, section 2.3.
    private static func refusal(_ code: SecurityEventError.Code, description: String) -> ServerResponse {
        .object(status: 400, headers: [("Content-Language", "en")]) { line in
            line.field("err", code.rawValue)
            line.field("description", description)
        }
    }

    private static func unavailable(retryAfter pause: Duration) -> ServerResponse {
        ServerResponse(status: 503, headers: [pause.retryAfter])
    }
}

extension MetricsEvent {
    /// One event of a security event token that Google sent. `token` is a hash that identifies the token. Its own id
    /// stays private to Google.
    static func securityEvent(_ event: AppliedSecurityEvent, token: String) -> MetricsEvent {
        MetricsEvent("security_event") { line in
            line.text("token", token, "16 hexadecimal digits that identify the token, also if it is sent again")
            line.text("kind", event.kind, "as in `tokens_revoked`; `other` for an unknown kind")
            line.text(
                "outcome",
                event.outcome.rawValue,
                """
                `applied`; `unmatched` (nothing stored matches); `ambiguous` (it might not be about the grants that it matches, which are \
                refreshed at once); `outdated` (it might be older than the stored tokens: the grant is refreshed at \
                once); `recorded` (nothing to do); `repeated` (received before)
                """
            )
            line.number("grants", event.grants, "grants changed or made due")
            line.number("sessions", event.sessions, "the app's sessions that ended")
        }
    }
}
