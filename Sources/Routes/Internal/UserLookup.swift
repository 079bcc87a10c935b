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
/// with forms of other sites too. So a change needs a ``SealedChange`` that only this page of the operator contains. An
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
    private struct Found<Result> {
        let outcome: String
        var grant: GrantID?
        let result: Result
    }

    /// A change that an operator confirmed on the page.
    private struct ConfirmedChange {
        let service: Service
        let change: SealedChange
        let user: String
        let connection: ConnectionID
    }

    /// Returns the user that a request names by id, e-mail address, handle, or the id of the grant.
    func user(_ request: ServerRequest) async throws(ServiceError) -> StatusPage.Lookup {
        try await answer(request) { service in
            let credential = try Self.credential(of: request)
            let fields = request.method == "POST" ? request.form : request.query
            try fields.checkNames(["user", "grant", "connections-of"])
            if let id = fields.only("connections-of"), fields.count == 1 {
                return try await connections(besideGrant: id, for: service, presenting: credential)
            }
            if let id = fields.only("grant"), fields.count == 1 {
                let grant = try await grant(named: id, visibleTo: service)
                return try await found(grant, named: id, for: service, presenting: credential)
            }
            let named = try namedUser(in: userText(in: fields))
            let grants = try await grants(of: named, visibleTo: service)
            return try await found(grants, named: named.userID, for: service, presenting: credential)
        }
    }

    /// Returns what the look-up of a grant's user finds, for a link that does not contain the user's name.
    private func connections(
        besideGrant id: String,
        for service: Service,
        presenting credential: Secret
    ) async throws -> Found<StatusPage.Lookup> {
        guard let grant = try await grant(named: id, visibleTo: service) else {
            return Found(outcome: "not_found", result: .unknownUser(id))
        }
        let grants = try await store.grants(ofUser: grant.userID).filter { service.covers($0.connection) }
        return try await found(grants, named: grant.userID, for: service, presenting: credential)
    }

    /// Shows the only grant, or lists several.
    private func found(
        _ grants: [Grant],
        named text: String,
        for service: Service,
        presenting credential: Secret
    ) async throws -> Found<StatusPage.Lookup> {
        guard grants.count > 1 else {
            return try await found(grants.first, named: text, for: service, presenting: credential)
        }
        let sorted = grants.sorted { $0.since < $1.since }
        return Found(outcome: "listed", result: .list(sorted, filter: nil, next: nil, count: sorted.count))
    }

    private func grant(named text: String, visibleTo service: Service) async throws -> Grant? {
        var grant: Grant?
        if let id = GrantID(text) { grant = try await store.grant(id) }
        if service.users == .everything, service.connections == .everything { return grant }
        // An operator must not learn which grants of others there are.
        guard let grant, service.users.covers(grant.userID), service.covers(grant.connection) else {
            throw ServiceError.foreignUser
        }
        return grant
    }

    /// Returns the grants of the user with this id, or the one that a handle names. Without any it returns those with
    /// this e-mail address.
    private func grants(of named: NamedUser, visibleTo service: Service) async throws -> [Grant] {
        let user = named.userID
        let mayLookUp = service.users.covers(user)
        if mayLookUp {
            let connections = try await store.grants(ofUser: user)
                .filter { named.connection == nil || $0.connection == named.connection }
                .filter { service.covers($0.connection) }
            if !connections.isEmpty { return connections }
        }
        var seen: [Grant] = []
        if user.contains("@"), named.connection == nil {
            seen = try await store.grants(ofEmail: user, atMost: Self.pageSize)
                .filter { service.users.covers($0.userID) && service.covers($0.connection) }
        }
        if seen.isEmpty, !mayLookUp { throw ServiceError.foreignUser }
        return seen
    }

    /// Returns what a text names: a user, or one connection of a user if it is a handle that says so.
    private func namedUser(in text: String) throws(CryptoError) -> NamedUser {
        guard text.hasPrefix(Service.handlePrefix) else { return NamedUser(userID: text) }
        return try services.user(ofHandle: text) ?? NamedUser(userID: text)
    }

    private func found(
        _ grant: Grant?,
        named text: String,
        for service: Service,
        presenting credential: Secret
    ) async throws -> Found<StatusPage.Lookup> {
        guard let grant else { return Found(outcome: "not_found", result: .unknownUser(text)) }
        let history = try await store.events(of: grant.id, atMost: Self.maximumHistory)
        let buttons = try SealedChange.all(of: grant, for: service, presenting: credential)
        return Found(
            outcome: "found",
            grant: grant.id,
            result: .found(grant, history: history, buttons: buttons)
        )
    }

    /// Returns a page of the grants of the operator's users.
    func list(_ request: ServerRequest, at now: Timestamp) async throws(ServiceError) -> StatusPage.Lookup {
        try await answer(request) { service in
            // A form sends the fields that are left empty too.
            let fields = request.query.filter { !$0.value.isEmpty && $0.name != "limit" }
            let page = try GrantPageRequest(fields + [("limit", "\(Self.pageSize)")])
            if let sorted = try await page.pageBySince(of: store, for: service, at: now) {
                return Found(
                    outcome: "listed",
                    result: .list(sorted.grants, filter: page.filter, next: sorted.next, count: sorted.count)
                )
            }
            let (grants, next) = try await page.page(of: store, for: service, at: now)
            return Found(outcome: "listed", result: .list(grants, filter: page.filter, next: next, count: nil))
        }
    }

    /// Performs the change that an operator confirmed on the page, and returns the grant. The page might be old: the
    /// transaction of the change first checks that the grant is still the one it showed.
    func change(_ request: ServerRequest, by administration: AdministrationHandler) async throws(ServiceError)
        -> GrantID
    {
        let confirmed = try await answer(request) { service -> Found<ConfirmedChange> in
            try request.form.checkNames(["change"])
            let credential = try Self.credential(of: request)
            guard let text = request.form.only("change"),
                let change = try SealedChange(text, by: service, presenting: credential)
            else { throw ServiceError.foreignForm }
            guard let grant = try await store.grant(change.grant) else { throw ServiceError.oldPage }
            return Found(
                outcome: "confirmed",
                grant: grant.id,
                result: ConfirmedChange(
                    service: service,
                    change: change,
                    user: grant.userID,
                    connection: grant.connection
                )
            )
        }
        let change = confirmed.change
        _ = try await administration.perform(
            change.operation,
            request,
            user: confirmed.user,
            connection: confirmed.connection,
            by: confirmed.service,
            checking: change.check
        )
        return change.grant
    }

    /// The credential that seals the changes on the operator's page.
    private static func credential(of request: ServerRequest) throws(ServiceError) -> Secret {
        guard let credential = request.serviceCredential else { throw .foreignForm }
        return credential
    }

    /// Calls `read` for an operator, and returns its result once the audit's line is recorded. A refusal is recorded
    /// too.
    private func answer<Result>(
        _ request: ServerRequest,
        _ read: (Service) async throws -> Found<Result>
    ) async throws(ServiceError) -> Result {
        guard let service = services.service(authenticating: request) else {
            log.diagnostics.info(
                "refused an operator's request: the credential is missing or unknown",
                ["from": request.peerAddress]
            )
            throw .noLogin
        }
        do {
            guard service.isOperator else { throw ServiceError.notOperator }
            // A request to a database that does not answer would take seconds.
            guard database.problem == nil else { throw ServiceError.storeUnavailable }
            let found = try await read(service)
            guard record(found.outcome, of: service, grant: found.grant) else {
                throw ServiceError.lookupAuditUnavailable
            }
            return found.result
        } catch {
            let refusal = ServiceError(causedBy: error)
            if refusal == .storeUnavailable {
                log.diagnostics.warning("an operator could not be answered: the database failed", ["error": "\(error)"])
            }
            record(refusal.code, of: service, grant: nil)
            throw refusal
        }
    }

    /// Writes the audit's line, and returns `false` if the line might be lost.
    @discardableResult
    private func record(_ outcome: String, of service: Service, grant: GrantID?) -> Bool {
        log.metrics.record(.lookup(outcome: outcome, by: service, grant: grant))
    }

    private func userText(in fields: [ServerRequest.Field]) throws(ServiceError) -> String {
        guard fields.count == 1, let user = fields.only("user") else {
            throw .invalidRequest("name one user or one grant, as in /users?user=alice")
        }
        let isName = user.isUserID || user.hasPrefix(Service.handlePrefix)
        // Invalid UTF-8 is decoded as U+FFFD, and would name another user.
        guard isName, !user.unicodeScalars.contains("\u{fffd}") else {
            throw .invalidRequest(
                "user must be 1 to \(String.maximumUserIDLength) bytes of UTF-8 without control characters"
            )
        }
        return user
    }
}

extension [ServerRequest.Field] {
    fileprivate func only(_ name: String) -> String? {
        let values = filter { $0.name == name }.map(\.value)
        return values.count == 1 ? values[0] : nil
    }
}

extension MetricsEvent {
    /// One user or list that an operator looked up on the status page, whatever the outcome.
    static func lookup(outcome: String, by service: Service, grant: GrantID?) -> MetricsEvent {
        MetricsEvent("lookup") { line in
            line.text("service", service.name, "the operator's service")
            line.text(
                "outcome",
                outcome,
                """
                `found`, `not_found` (the user has no grant), `listed` (a page of grants), `confirmed` (a change, which \
                makes lines `manage` too), `changed` (the grant is gone), `forbidden`, `invalid_request`, \
                `store_unavailable` or `audit_unavailable`
                """
            )
            line.text("grant", ifAny: grant?.description, "the grant, if the user was found")
        }
    }
}
