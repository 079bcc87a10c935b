package import Base
import HTTPServer
package import Scheduler
import Status
package import Storage
import Telemetry

/// Looks up a user for an operator, after the audit's line is recorded.
package struct UserLookup: Sendable {
    /// More than a store keeps of one grant (``Retention/eventsPerGrant``).
    private static let longestHistory = 200

    private let store: any Store
    private let services: ServiceDirectory
    private let database: DatabaseReadiness
    private let log: EngineLog

    package init(
        store: any Store,
        services: ServiceDirectory,
        database: DatabaseReadiness,
        log: EngineLog
    ) {
        self.store = store
        self.services = services
        self.database = database
        self.log = log
    }

    /// Returns the user that a request names.
    func answer(_ request: ServerRequest) async throws(APIError) -> StatusPageContents.Lookup {
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
    ) async throws(APIError) -> StatusPageContents.Lookup {
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
            log.diagnostics.warning("a user could not be looked up: the database failed", ["error": "\(error)"])
            throw .storeUnavailable
        }
        guard record(found == nil ? "not_found" : "found", service, found?.grant.id) else {
            throw .lookupAuditUnavailable
        }
        return found.map { .found($0.grant, history: $0.history) } ?? .unknownUser(user)
    }

    /// Writes the audit's line; returns `false` if the line may be lost.
    @discardableResult
    private func record(_ outcome: String, _ service: Service, _ grant: GrantID?) -> Bool {
        log.metrics.record(.lookup(service: service.name, outcome: outcome, grant: grant?.description))
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
