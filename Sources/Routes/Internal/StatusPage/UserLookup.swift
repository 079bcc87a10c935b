package import Base
import HTTPServer
import Status
package import Storage
package import Telemetry

/// Looks up a user for an operator, after the audit's line is recorded.
package struct UserLookup: Sendable {
    /// More than a store keeps of one grant (``Retention/eventsPerGrant``).
    private static let longestHistory = 200

    private let store: any Store
    private let services: ServiceDirectory
    private let database: DatabaseReadiness
    private let metrics: MetricsLog
    private let diagnostics: DiagnosticLog

    package init(
        store: any Store,
        services: ServiceDirectory,
        database: DatabaseReadiness,
        metrics: MetricsLog,
        diagnostics: DiagnosticLog
    ) {
        self.store = store
        self.services = services
        self.database = database
        self.metrics = metrics
        self.diagnostics = diagnostics
    }

    /// Returns the user that a request names.
    func answer(_ request: ServerRequest) async throws(StatusPageRefusal) -> StatusPageContents.Lookup {
        guard let service = services.service(authenticating: request) else {
            diagnostics.info(
                "refused to look up a user: the credential is missing or unknown",
                ["from": request.peerAddress]
            )
            throw .unauthorized
        }
        do throws(StatusPageRefusal) {
            guard service.isOperator else { throw .notOperator }
            let user = try Self.user(in: request.query)
            // Before the store is read, so that an operator does not learn anything about other users.
            guard service.users.covers(user) else { throw .userNotAllowed }
            return try await lookup(user, for: service)
        } catch {
            record(error.code, service, nil)
            throw error
        }
    }

    private func lookup(
        _ user: String,
        for service: Service
    ) async throws(StatusPageRefusal) -> StatusPageContents.Lookup {
        // A request to a database that does not answer would take seconds.
        guard database.problem == nil else { throw .storeUnavailable }
        let found: (grant: Grant, history: [GrantEvent])?
        do {
            if let grant = try await store.grant(ofUser: user) {
                found = (grant, try await store.events(of: grant.id, atMost: Self.longestHistory))
            } else {
                found = nil
            }
        } catch {
            diagnostics.warning("a user could not be looked up: the database failed", ["error": "\(error)"])
            throw .storeUnavailable
        }
        guard record(found == nil ? "not_found" : "found", service, found?.grant.id) else { throw .auditUnavailable }
        return found.map { .found($0.grant, history: $0.history) } ?? .unknownUser(user)
    }

    /// Writes the audit's line; returns `false` if the line may be lost.
    @discardableResult
    private func record(_ outcome: String, _ service: Service, _ grant: GrantID?) -> Bool {
        metrics.record(.lookup(service: service.name, outcome: outcome, grant: grant?.description))
    }

    private static func user(in query: [ServerRequest.Field]) throws(StatusPageRefusal) -> String {
        let users = query.filter { $0.name == "user" }.map(\.value)
        guard users.count == 1 else { throw .invalidUser("name one user, as in /users?user=alice") }
        // Invalid UTF-8 is decoded as U+FFFD, and would name another user.
        guard UserIdentifier.isWellFormed(users[0]), !users[0].unicodeScalars.contains("\u{fffd}") else {
            throw .invalidUser(
                "user must be 1 to \(UserIdentifier.maxLength) bytes of UTF-8 without control characters"
            )
        }
        return users[0]
    }
}

/// The process that the status page is about.
package struct WorkerIdentity: Sendable {
    let name: String
    let version: String
    let startedAt: Timestamp

    package init(name: String, version: String, startedAt: Timestamp) {
        self.name = name
        self.version = version
        self.startedAt = startedAt
    }
}
