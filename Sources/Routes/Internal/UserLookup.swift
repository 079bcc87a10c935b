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
    private typealias Found<Result> = (outcome: String, grant: GrantID?, result: Result)

    /// Returns the user that a request names by id, e-mail address, handle, or the id of the grant.
    func user(_ request: ServerRequest) async throws(APIError) -> StatusPage.Lookup {
        try await answer(request) { service in
            let credential = try Self.credential(of: request)
            let fields = request.method == "POST" ? request.form : request.query
            try fields.checkNames(["user", "grant"])
            if let text = fields.only("grant"), fields.count == 1 {
                let grant = if let id = GrantID(text) { try await store.grant(id) } else { Grant?.none }
                // An operator must not learn which grants of others there are.
                guard service.users == .everything || grant.map({ service.users.covers($0.userID) }) ?? false else {
                    throw APIError.foreignUser
                }
                return try await found(grant, text, for: service, presenting: credential)
            }
            let text = try userText(in: fields)
            let user = text.hasPrefix(Service.handlePrefix) ? try services.user(ofHandle: text) ?? text : text
            if service.users.covers(user), let grant = try await store.grant(ofUser: user) {
                return try await found(grant, user, for: service, presenting: credential)
            }
            let grants = user.contains("@") ? try await store.grants(ofEmail: user, atMost: Self.pageSize) : []
            let seen = grants.filter { service.users.covers($0.userID) }
            if seen.count > 1 { return ("listed", nil, .list(seen, filter: nil, next: nil)) }
            guard !seen.isEmpty || service.users.covers(user) else { throw APIError.foreignUser }
            return try await found(seen.first, user, for: service, presenting: credential)
        }
    }

    private func found(
        _ grant: Grant?,
        _ text: String,
        for service: Service,
        presenting credential: Secret
    ) async throws -> Found<StatusPage.Lookup> {
        guard let grant else { return ("not_found", nil, .unknownUser(text)) }
        let history = try await store.events(of: grant.id, atMost: Self.maximumHistory)
        let buttons = try SealedChange.all(of: grant, for: service, presenting: credential)
        return ("found", grant.id, .found(grant, history: history, buttons: buttons))
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
    /// The page might be old: the transaction of the change first checks that the grant is still the one it showed.
    func change(_ request: ServerRequest, by administration: AdministrationHandler) async throws(APIError) -> GrantID {
        let (service, change, user) = try await answer(request) { service -> Found<(Service, SealedChange, String)> in
            try request.form.checkNames(["change"])
            let credential = try Self.credential(of: request)
            let change = try request.form.only("change").flatMap { text in
                try SealedChange(text, by: service, presenting: credential)
            }
            guard let change else { throw APIError.foreignForm }
            guard let grant = try await store.grant(change.grant) else { throw APIError.oldPage }
            return ("confirmed", grant.id, (service, change, grant.userID))
        }
        _ = try await administration.perform(change.operation, request, user: user, by: service, checking: change.check)
        return change.grant
    }

    /// The credential that seals the changes on the operator's page.
    private static func credential(of request: ServerRequest) throws(APIError) -> Secret {
        guard let credential = request.serviceCredential else { throw .foreignForm }
        return credential
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
                "refused an operator's request: the credential is missing or unknown",
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
                log.diagnostics.warning("an operator could not be answered: the database failed", ["error": "\(error)"])
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
        guard fields.count == 1, let user = fields.only("user") else {
            throw .invalidRequest("name one user or one grant, as in /users?user=alice")
        }
        // Invalid UTF-8 is decoded as U+FFFD, and would name another user.
        guard user.isUserID || user.hasPrefix(Service.handlePrefix), !user.unicodeScalars.contains("\u{fffd}") else {
            throw .invalidRequest(
                "user must be 1 to \(String.maximumUserIDLength) bytes of UTF-8 without control characters"
            )
        }
        return user
    }
}

/// A change of a grant that a button of the page stands for.
///
/// It is sealed with the operator's credential, so that no other site can make a form with it. The credential's hash
/// would not do: whoever can read the services file has that.
private struct SealedChange {
    let operation: AdministrationHandler.Operation
    let grant: GrantID
    /// The grant's version that the operator saw.
    private let version: String

    /// Returns the texts of the buttons that make sense for a grant, for an operator who may manage it.
    static func all(
        of grant: Grant,
        for service: Service,
        presenting credential: Secret
    ) throws -> [StatusPage.Change: String] {
        guard service.isManager, grant.state != .disconnected else { return [:] }
        return try StatusPage.Change.allCases.reduce(into: [:]) { buttons, change in
            guard change == .disconnect || !grant.state.endsRefreshes else { return }
            let sealed = try key(of: service, presenting: credential).seal("\(change.rawValue) \(grant.version)")
            buttons[change] = Base64URL.encode(sealed)
        }
    }

    /// Opens a text of the page, or returns `nil` for any other text.
    init?(_ text: String, by service: Service, presenting credential: Secret) throws {
        guard service.isManager, let sealed = Base64URL.decode(text[...]),
            let parts = try Self.key(of: service, presenting: credential).open(sealed)?
                .split(separator: " ", maxSplits: 1),
            parts.count == 2,
            let operation = AdministrationHandler.Operation(rawValue: String(parts[0])),
            let grant = GrantID(String(parts[1].prefix { $0 != " " }))
        else { return nil }
        (self.operation, self.grant, version) = (operation, grant, String(parts[1]))
    }

    /// Throws if the user's stored grant is not as the operator saw it.
    func check(_ stored: Grant?) throws {
        guard stored?.version == version else { throw APIError.oldPage }
    }

    /// No service has a name with a space, so that a handle is never a change.
    private static func key(of service: Service, presenting credential: Secret) -> TextSealingKey {
        TextSealingKey(from: credential, owner: "changes by \(service.name)")
    }
}

extension [ServerRequest.Field] {
    /// The value of the only field with this name, or `nil`.
    fileprivate func only(_ name: String) -> String? {
        let values = filter { $0.name == name }.map(\.value)
        return values.count == 1 ? values[0] : nil
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
                makes lines `manage` too), `changed` (the grant is gone), `forbidden`, `invalid_request`, \
                `store_unavailable` or `audit_unavailable`
                """
            )
            line.text("grant", ifAny: grant?.description, "the grant, if the user was found")
        }
    }
}
