import Base
import HTTPServer
import Scheduler
import Status
import Storage
import Telemetry

/// Looks up a user for an operator, after the audit's line is recorded.
///
/// An operator logs in with HTTP Basic, because a browser cannot send a bearer token. The browser sends the credential
/// with requests of other pages too, so the routes of operators change nothing. An operator with scopes gives this up:
/// a form of another page could make the token endpoint refresh a grant.
struct UserLookup: Sendable {
    /// More than a store keeps of one grant (``Retention/eventsPerGrant``).
    private static let maximumHistory = 200

    let store: any Store
    let services: ServiceDirectory
    let database: DatabaseReadiness
    let log: EngineLog

    /// Returns the user that a request names.
    func answer(_ request: ServerRequest) async throws(APIError) -> StatusPage.Lookup {
        guard let service = services.service(authenticating: request) else {
            log.diagnostics.info(
                "refused to look up a user: the credential is missing or unknown",
                ["from": request.peerAddress]
            )
            throw .noLogin
        }
        do throws(APIError) {
            guard service.isOperator else { throw .notOperator }
            let user = try Self.user(in: request.query)
            // Before the store is read, so that an operator does not learn anything about other users.
            guard service.users.covers(user) else { throw .foreignUser }
            return try await lookup(user, for: service)
        } catch {
            record(error.code, service, nil)
            throw error
        }
    }

    private func lookup(
        _ user: String,
        for service: Service
    ) async throws(APIError) -> StatusPage.Lookup {
        // A request to a database that does not answer would take seconds.
        guard database.problem == nil else { throw .storeUnavailable }
        let found: (grant: Grant, history: [GrantEvent])?
        do {
            if let grant = try await store.grant(ofUser: user) {
                found = (grant, try await store.events(of: grant.id, atMost: Self.maximumHistory))
            } else {
                found = nil
            }
        } catch {
            log.diagnostics.warning("a user could not be looked up: the database failed", ["error": "\(error)"])
            throw .storeUnavailable
        }
        guard record(found == nil ? "not_found" : "found", service, found?.grant.id) else {
            throw .lookupAuditUnavailable
        }
        return found.map { .found($0.grant, history: $0.history) } ?? .unknownUser(user)
    }

    /// Writes the audit's line, and returns `false` if the line might be lost.
    @discardableResult
    private func record(_ outcome: String, _ service: Service, _ grant: GrantID?) -> Bool {
        log.metrics.record(.lookup(outcome, service, grant))
    }

    private static func user(in query: [ServerRequest.Field]) throws(APIError) -> String {
        let users = query.filter { $0.name == "user" }.map(\.value)
        guard users.count == 1 else { throw .invalidRequest("name one user, as in /users?user=alice") }
        // Invalid UTF-8 is decoded as U+FFFD, and would name another user.
        guard users[0].isUserID, !users[0].unicodeScalars.contains("\u{fffd}") else {
            throw .invalidRequest(
                "user must be 1 to \(String.maximumUserIDLength) bytes of UTF-8 without control characters"
            )
        }
        return users[0]
    }
}

extension MonitoringHandler {
    /// The headers of the page and of its refusals: no cache keeps them, no other page shows them in a frame or loads
    /// them, and a user's id in the URL is not sent to other sites.
    ///
    /// The name in the `Host` header is not checked. A page elsewhere whose name resolves to this machine (DNS
    /// rebinding) could read the counts, as it could read `/status` and `/metrics`. It cannot read a user, because a
    /// browser sends a credential only to the name for which it was entered. A check would refuse proxies, and names of
    /// this machine that only its network knows.
    static let pageHeaders: [ServerRequest.Field] = [
        ServerResponse.noStore,
        ("Content-Security-Policy", StatusPage.contentSecurityPolicy),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
}

/// The routes of the status page, for people with a browser.
extension InternalRoutes {
    static let usersPath = "/users"

    var statusPageRoutes: [Route] {
        [
            Route("GET", "/") { request, _ in .respond(await page(for: request)) },
            // Without a credential, because the links of alerts lead here and it is the same for everyone.
            Route("GET", "/runbook") { _, _ in
                let headers = [("Content-Type", "text/html; charset=utf-8")] + MonitoringHandler.pageHeaders
                return .respond(ServerResponse(headers: headers, body: Array(StatusPage.runbook.utf8)))
            },
            Route("GET", Self.usersPath) { request, _ in .respond(await user(for: request)) },
        ]
    }

    private func page(for request: ServerRequest) async -> ServerResponse {
        guard maySeeDetails(request) else { return APIError.noLogin.pageResponse }
        return await monitoring.page()
    }

    private func user(for request: ServerRequest) async -> ServerResponse {
        guard let lookup else { return APIError.noOperators.pageResponse }
        do throws(APIError) {
            return await monitoring.page(showing: try await lookup.answer(request))
        } catch {
            return error.pageResponse
        }
    }
}

/// The errors of the status page, as a text for people.
extension APIError {
    static let noLogin = APIError(401, "unauthorized", "the name and the credential of a service are needed")
    static let notOperator = APIError(
        403,
        "forbidden",
        #"this service may not look up users: its entry in the services file needs "operator": true"#
    )
    /// The operator must not look up this user.
    static let foreignUser = APIError(
        403,
        "forbidden",
        #"this service may not look up this user: see "users" of its entry in the services file"#
    )
    static let noOperators = temporary(
        "no_services",
        "this worker cannot look up users: it has no --services-file, which lists the operators"
    )
    static let lookupAuditUnavailable = temporary(
        "audit_unavailable",
        "the audit cannot be written now, and users are not shown without it"
    )

    var pageResponse: ServerResponse {
        var response = ServerResponse.text("\(message)\n", status: status)
        response.headers += MonitoringHandler.pageHeaders
        // A browser asks its user for both (RFC 7617).
        if status == 401 {
            response.headers.append(("WWW-Authenticate", #"Basic realm="refresh-worker", charset="UTF-8""#))
        }
        if let retryAfter { response.headers.append(retryAfter.retryAfter) }
        return response
    }
}

extension MetricsEvent {
    /// One user that an operator looked up on the status page, whatever the outcome.
    static func lookup(_ outcome: String, _ service: Service, _ grant: GrantID?) -> MetricsEvent {
        MetricsEvent("lookup") { line in
            line.text("service", service.name, "the operator's service")
            line.text(
                "outcome",
                outcome,
                """
                `found`, `not_found` (the user has no grant), `forbidden`, `invalid_request`, `store_unavailable` or \
                `audit_unavailable`
                """
            )
            line.text("grant", ifAny: grant?.description, "the grant, if the user was found")
        }
    }
}
