import Base
import Crypto
import HTTPServer
import Scheduler
import Status
import Storage
import Telemetry

/// Shows an operator a user or a list of grants, after the audit's line is recorded, and checks the changes of one who
/// may manage grants.
///
/// An operator logs in with HTTP Basic, because a browser cannot send a bearer token. The browser sends the credential
/// with forms of other sites too. So a change needs a sealed ``Order`` that only this page of the operator contains. An
/// operator with scopes gives this up: a form of another site could make the token endpoint refresh a grant.
struct UserLookup: Sendable {
    /// More than a store keeps of one grant (``Retention/eventsPerGrant``).
    private static let maximumHistory = 200
    private static let pageSize = 50

    let store: any Store
    let services: ServiceDirectory
    let database: DatabaseReadiness
    let log: EngineLog

    /// What the audit's line says, and what the operator gets.
    private typealias Found<Result> = (outcome: String, grant: GrantID?, result: Result)

    /// Returns the user that a request names by id, e-mail address, handle, or the id of the grant.
    func user(_ request: ServerRequest) async throws(APIError) -> StatusPage.Lookup {
        try await answer(request) { service in
            let fields = request.method == "POST" ? request.form : request.query
            if let text = fields.only("grant"), !fields.contains(where: { $0.name == "user" }) {
                let grant = if let id = GrantID(text) { try await store.grant(id) } else { Grant?.none }
                // An operator must not learn which grants of others there are.
                guard service.users == .everything || grant.map({ service.users.covers($0.userID) }) ?? false else {
                    throw APIError.foreignUser
                }
                return try await found(grant, text, for: service)
            }
            let text = try userText(in: fields)
            let user = text.hasPrefix(UserHandle.prefix) ? try services.user(ofHandle: text) ?? text : text
            if service.users.covers(user), let grant = try await store.grant(ofUser: user) {
                return try await found(grant, user, for: service)
            }
            let grants = user.contains("@") ? try await store.grants(ofEmail: user, atMost: Self.pageSize) : []
            let seen = grants.filter { service.users.covers($0.userID) }
            if seen.count > 1 { return ("listed", nil, .list(seen, filter: nil, next: nil)) }
            guard !seen.isEmpty || service.users.covers(user) else { throw APIError.foreignUser }
            return try await found(seen.first, user, for: service)
        }
    }

    private func found(
        _ grant: Grant?,
        _ text: String,
        for service: Service
    ) async throws -> Found<StatusPage.Lookup> {
        guard let grant else { return ("not_found", nil, .unknownUser(text)) }
        let history = try await store.events(of: grant.id, atMost: Self.maximumHistory)
        return ("found", grant.id, .found(grant, history: history, orders: try Order.all(about: grant, for: service)))
    }

    /// Returns a page of the grants of the operator's users.
    func list(_ request: ServerRequest, at now: Timestamp) async throws(APIError) -> StatusPage.Lookup {
        try await answer(request) { service in
            // A form sends the fields that are left empty too.
            let fields = request.query.filter { !$0.value.isEmpty && $0.name != "limit" }
            let page = try GrantPageRequest(fields + [("limit", "\(Self.pageSize)")])
            let (grants, next) = try await page.page(of: store, for: service, at: now)
            return ("listed", nil, .list(grants, filter: page.filter, next: next))
        }
    }

    /// Performs the change that an operator confirmed on the page, and returns the grant.
    ///
    /// The page might be old: nothing is changed if the grant got another refresh token since.
    func change(_ request: ServerRequest, by administration: AdministrationHandler) async throws(APIError) -> GrantID {
        let (service, order, user) = try await answer(request) { service -> Found<(Service, Order, String)> in
            let order = try request.form.only("change").flatMap { try Order($0, by: service) }
            guard let order else { throw APIError.foreignForm }
            guard let grant = try await store.grant(order.grant), grant.generation == order.generation else {
                throw APIError.oldPage
            }
            return ("confirmed", grant.id, (service, order, grant.userID))
        }
        _ = try await administration.perform(order.operation, request, user: user, by: service)
        return order.grant
    }

    /// Calls `read` for an operator, and returns its result once the audit's line is recorded.
    ///
    /// A refusal is recorded too.
    private func answer<Result>(
        _ request: ServerRequest,
        _ read: (Service) async throws -> Found<Result>
    ) async throws(APIError) -> Result {
        guard let service = services.service(authenticating: request) else {
            log.diagnostics.info(
                "refused to look up a user: the credential is missing or unknown",
                ["from": request.peerAddress]
            )
            throw .noLogin
        }
        do {
            guard service.isOperator else { throw APIError.notOperator }
            // A request to a database that does not answer would take seconds.
            guard database.problem == nil else { throw APIError.storeUnavailable }
            let found = try await read(service)
            guard record(found.outcome, service, found.grant) else { throw APIError.lookupAuditUnavailable }
            return found.result
        } catch {
            let refusal = APIError(internally: error)
            if refusal == .storeUnavailable {
                log.diagnostics.warning("a user could not be looked up: the database failed", ["error": "\(error)"])
            }
            record(refusal.code, service, nil)
            throw refusal
        }
    }

    /// Writes the audit's line, and returns `false` if the line might be lost.
    @discardableResult
    private func record(_ outcome: String, _ service: Service, _ grant: GrantID?) -> Bool {
        log.metrics.record(.lookup(outcome, service, grant))
    }

    private func userText(in fields: [ServerRequest.Field]) throws(APIError) -> String {
        guard let user = fields.only("user") else {
            throw .invalidRequest("name one user, as in /users?user=alice")
        }
        // Invalid UTF-8 is decoded as U+FFFD, and would name another user.
        guard user.isUserID || user.hasPrefix(UserHandle.prefix), !user.unicodeScalars.contains("\u{fffd}") else {
            throw .invalidRequest(
                "user must be 1 to \(String.maximumUserIDLength) bytes of UTF-8 without control characters"
            )
        }
        return user
    }
}

/// A change of a grant that a button of the page stands for.
///
/// It is sealed for one operator, as a handle is, so that no other site can make a form with it. It names the version
/// of the refresh token that the operator saw.
private struct Order {
    let operation: AdministrationHandler.Operation
    let grant: GrantID
    let generation: Int64

    /// Returns the texts of the buttons that make sense for a grant, for an operator who may manage it.
    static func all(about grant: Grant, for service: Service) throws -> [StatusPage.Change: String] {
        guard service.isManager, grant.state != .disconnected else { return [:] }
        return try StatusPage.Change.allCases.reduce(into: [:]) { orders, change in
            guard change == .disconnect || !grant.state.endsRefreshes else { return }
            let sealed = try key(of: service).seal("\(change.rawValue) \(grant.id) \(grant.generation)")
            orders[change] = Base64URL.encode(sealed)
        }
    }

    /// Opens a text of the page, or returns `nil` for any other text.
    init?(_ text: String, by service: Service) throws {
        guard service.isManager, let sealed = Base64URL.decode(text[...]),
            let parts = try Self.key(of: service).open(sealed)?.split(separator: " "), parts.count == 3,
            let operation = AdministrationHandler.Operation(rawValue: String(parts[0])),
            let grant = GrantID(String(parts[1])), let generation = Int64(parts[2])
        else { return nil }
        (self.operation, self.grant, self.generation) = (operation, grant, generation)
    }

    /// No service has a name with a space, so that a handle is never an order.
    private static func key(of service: Service) -> TextSealingKey {
        TextSealingKey(from: Secret(utf8: service.credentialHash), owner: "orders of \(service.name)")
    }
}

extension [ServerRequest.Field] {
    /// The value of the only field with this name, or `nil`.
    fileprivate func only(_ name: String) -> String? {
        let values = filter { $0.name == name }.map(\.value)
        return values.count == 1 ? values[0] : nil
    }
}

extension MonitoringHandler {
    /// The headers of the page and of its refusals: no cache keeps them, no other page shows them in a frame or loads
    /// them, and a URL is not sent to other sites.
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
            Route("GET", "/grants") { request, _ in .respond(await list(for: request)) },
            Route("GET", Self.usersPath) { request, _ in .respond(await user(for: request)) },
            Route("POST", Self.usersPath) { request, _ in .respond(await user(for: request)) },
        ]
    }

    private func page(for request: ServerRequest) async -> ServerResponse {
        guard maySeeDetails(request) else { return APIError.noLogin.pageResponse }
        return await monitoring.page()
    }

    private func list(for request: ServerRequest) async -> ServerResponse {
        guard let lookup else { return APIError.noOperators.pageResponse }
        do throws(APIError) {
            return await monitoring.page(showing: try await lookup.list(request, at: monitoring.time.now))
        } catch {
            return error.pageResponse
        }
    }

    /// The form sends a body, because an address would have the user's id or e-mail address, and proxies log addresses.
    private func user(for request: ServerRequest) async -> ServerResponse {
        guard let lookup, let administration else { return APIError.noOperators.pageResponse }
        do throws(APIError) {
            guard request.method == "POST", request.form.contains(where: { $0.name == "change" }) else {
                return await monitoring.page(showing: try await lookup.user(request))
            }
            let grant = try await lookup.change(request, by: administration)
            // So that a reload does not repeat the change.
            let location = ("Location", "users?grant=\(grant)")
            return ServerResponse(status: 303, headers: [location] + MonitoringHandler.pageHeaders)
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
    static let foreignForm = APIError(
        403,
        "forbidden",
        #"""
        only a button of this page, for an operator with "manage": true, changes a grant: open the user again
        """#
    )
    static let oldPage = APIError(
        409,
        "changed",
        "the grant has changed since the page was loaded, and stays as it is: open the user again"
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
    /// One user or list that an operator looked up on the status page, whatever the outcome.
    static func lookup(_ outcome: String, _ service: Service, _ grant: GrantID?) -> MetricsEvent {
        MetricsEvent("lookup") { line in
            line.text("service", service.name, "the operator's service")
            line.text(
                "outcome",
                outcome,
                """
                `found`, `not_found` (the user has no grant), `listed` (a page of grants), `confirmed` (a change, which \
                makes lines `manage` too), `changed` (the grant has changed since), `forbidden`, `invalid_request`, \
                `store_unavailable` or `audit_unavailable`
                """
            )
            line.text("grant", ifAny: grant?.description, "the grant, if the user was found")
        }
    }
}
