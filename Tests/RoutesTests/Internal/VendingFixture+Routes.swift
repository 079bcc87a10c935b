import HTTPServer
import Scheduler
import Status
import Storage
import Telemetry
import TestSupport

@testable import Base
@testable import Routes

/// All routes of the internal listener.
extension VendingFixture {
    struct MissingResponse: Error {}

    /// Returns the part that `/readyz`, `/metrics` and the status page share.
    func monitoring(
        database: DatabaseReadiness,
        stalled: [String] = [],
        observe: @escaping @Sendable (GrantStatistics) async throws -> StatusSnapshot
    ) -> MonitoringHandler {
        let source = ObservedStatus { [store, time] process in
            let snapshot = try await observe(try await store.grantStatistics(at: time.now))
            return snapshot.with(process, at: snapshot.at)
        }
        let status = LiveStatus(
            from: source,
            database: database,
            engine: engine,
            metrics: metrics,
            diagnostics: log.diagnostics,
            time: time
        )
        return MonitoringHandler(
            name: "worker",
            version: "1.0",
            status: status,
            engine: engine,
            counters: counters,
            log: log,
            metrics: MetricsSource(
                version: "1.0",
                status: status,
                engine: engine,
                counters: counters,
                metricsLog: metrics,
                time: time
            ),
            phase: phase,
            time: time,
            stalledLoops: { stalled }
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

    func administration(_ database: DatabaseReadiness) -> AdministrationHandler {
        AdministrationHandler(
            engine: engine,
            vault: vault,
            services: services,
            database: database,
            log: log,
            time: time,
            random: random,
            clientIDs: { ["client"] }
        )
    }

    /// Returns the routes of a worker whose database was just checked.
    func routes(
        exposure: InternalRoutes.Exposure = .thisMachine,
        hasServices: Bool = true
    ) async -> InternalRoutes {
        let database = DatabaseReadiness(store: store, time: time)
        await database.check()
        let monitoring = monitoring(database: database) { [time] in .of($0, at: time.now) }
        return InternalRoutes(
            vending: hasServices ? handler : nil,
            administration: hasServices ? administration(database) : nil,
            monitoring: monitoring,
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
