package import Base
import HTTPServer
package import Scheduler
import Status
package import Telemetry

/// Makes the status page from the last counts, without waiting for the database.
package struct StatusPageHandler: Sendable {
    private let identity: WorkerIdentity
    private let monitoring: MonitoringHandler
    private let engine: RefreshEngine
    private let activity: RecentActivity
    private let changes: RecentChanges
    private let time: any TimeSource

    package init(
        identity: WorkerIdentity,
        monitoring: MonitoringHandler,
        engine: RefreshEngine,
        activity: RecentActivity,
        changes: RecentChanges,
        time: any TimeSource
    ) {
        self.identity = identity
        self.monitoring = monitoring
        self.engine = engine
        self.activity = activity
        self.changes = changes
        self.time = time
    }

    /// Returns the page, with the answer to an operator who looked up a user.
    func page(showing lookup: StatusPageContents.Lookup? = nil) async -> ServerResponse {
        var contents = await contents()
        contents.lookup = lookup
        return ServerResponse(
            headers: [("Content-Type", "text/html; charset=utf-8")] + Self.headers,
            body: Array(StatusPage(contents).html.utf8)
        )
    }

    /// Returns everything that the page shows, except a user.
    func contents() async -> StatusPageContents {
        let process = await monitoring.observations()
        let observed = await monitoring.latestObservations()
        let phase = monitoring.phase.current
        var contents = StatusPageContents(
            at: time.now,
            worker: identity.name,
            version: identity.version,
            startedAt: identity.startedAt,
            phase: phase == .serving && !monitoring.isReady(process) ? "not ready" : phase.rawValue
        )
        contents.judgement = monitoring.judgement(of: process, observed)
        contents.countedAt = observed?.at
        contents.grants = observed?.grants
        contents.workers = observed?.workers
        contents.notices = observed?.notices
        contents.clients = await clients(observed)
        contents.activity = activity.minutes
        contents.changes = changes.all
        return contents
    }

    /// Returns the clients as stored, or without the database as this worker knows them.
    private func clients(_ observed: Observations?) async -> [StatusPageContents.Client] {
        if let observed { return observed.clients.compactMap(StatusPageContents.Client.init) }
        return await engine.clientStatuses.map { status in
            StatusPageContents.Client(
                id: status.clientID,
                breaker: status.breaker.rawValue,
                ceiling: status.ceiling
            )
        }
    }
}

extension StatusPageHandler {
    /// The headers of the page and of its refusals: no cache keeps them, no other page shows them in a frame or loads
    /// them, and a user's id in the URL is not sent to other sites.
    ///
    /// The name in the `Host` header is not checked. A page elsewhere whose name resolves to this machine (DNS
    /// rebinding) could read the counts, as it could read `/status` and `/metrics`. It cannot read a user, because a
    /// browser sends a credential only to the name for which it was entered. A check would refuse proxies, and names of
    /// this machine that only its network knows.
    static let headers: [ServerRequest.Field] = [
        ServerResponse.noStore,
        ("Content-Security-Policy", StatusPage.contentSecurityPolicy),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
}

extension StatusPageContents.Client {
    /// Makes the client, and returns `nil` for one that only has expired grants, which the judgement names.
    fileprivate init?(_ client: Observations.Client) {
        guard let breaker = client.breaker, let ceiling = client.ceiling else { return nil }
        self.init(
            id: client.id,
            breaker: breaker,
            breakerReason: client.breakerReason,
            ceiling: ceiling,
            isSlowed: client.isSlowed,
            pause: client.pause,
            lastSuccessAt: client.lastSuccessAt
        )
    }
}

/// The routes of the status page, for people with a browser.
extension InternalRoutes {
    static let usersPath = "/users"

    var statusPageRoutes: [Route] {
        [
            Route("GET", "/") { request, _ in .respond(await page(for: request)) },
            Route("GET", Self.usersPath) { request, _ in .respond(await user(for: request)) },
        ]
    }

    private func page(for request: ServerRequest) async -> ServerResponse {
        guard maySeeDetails(request) else { return APIError.noLogin.pageResponse }
        return await statusPage.page()
    }

    private func user(for request: ServerRequest) async -> ServerResponse {
        guard let lookup else { return APIError.noOperators.pageResponse }
        do throws(APIError) {
            return await statusPage.page(showing: try await lookup.answer(request))
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
    /// The operator may not look up this user.
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
        response.headers += StatusPageHandler.headers
        // A browser asks its user for both (RFC 7617).
        if status == 401 {
            response.headers.append(("WWW-Authenticate", #"Basic realm="refresh-worker", charset="UTF-8""#))
        }
        if let retryAfter { response.headers.append(retryAfter.retryAfter) }
        return response
    }
}
