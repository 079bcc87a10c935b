import HTTPServer
import Routes
import Scheduler
import Status
import Storage
import Telemetry

@testable import Base

/// All routes of the internal listener.
extension VendingFixture {
    struct MissingResponse: Error {}

    /// Returns the part that `/readyz`, `/metrics` and the status page share.
    func monitoring(
        database: DatabaseReadiness,
        stalled: [String] = [],
        report: @escaping @Sendable (ProcessObservations) async throws -> String = { _ in "{}" },
        observe: @escaping @Sendable (GrantStatistics) async throws -> Observations
    ) -> MonitoringHandler {
        MonitoringHandler(
            database: database,
            engine: engine,
            counters: counters.lifetime,
            metrics: metrics,
            phase: phase,
            time: time,
            stalledLoops: { stalled },
            statusReport: report,
            observe: { [store, time] in try await observe(try await store.grantStatistics(at: time.now)) }
        )
    }

    func statusPage(_ monitoring: MonitoringHandler) -> StatusPageHandler {
        StatusPageHandler(
            identity: WorkerIdentity(name: "worker", version: "1.0", startedAt: time.now),
            monitoring: monitoring,
            engine: engine,
            activity: counters.activity,
            changes: log.recentChanges,
            time: time
        )
    }

    func lookup(_ database: DatabaseReadiness) -> UserLookup {
        UserLookup(
            store: store,
            services: services,
            database: database,
            log: log
        )
    }

    /// Returns the routes of a worker whose database was just checked.
    func routes(
        exposure: InternalRoutes.Exposure = .thisMachine,
        hasServices: Bool = true
    ) async -> InternalRoutes {
        let database = DatabaseReadiness(store: store, time: time)
        await database.check()
        let monitoring = monitoring(database: database) { [time] in Observations(at: time.now, grants: $0) }
        return InternalRoutes(
            vending: hasServices ? handler : nil,
            monitoring: monitoring,
            statusPage: statusPage(monitoring),
            lookup: hasServices ? lookup(database) : nil,
            exposure: exposure
        )
    }

    /// Returns the response of a route, as the server asks for it.
    static func response(to request: ServerRequest, from routes: InternalRoutes) async throws -> ServerResponse {
        let router = routes.router
        if case .respond(let response)? = router.immediateReply(request) { return response }
        guard case .respond(let response) = await router.answer(request) else { throw MissingResponse() }
        return response
    }
}
