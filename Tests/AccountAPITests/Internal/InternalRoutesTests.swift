import AccountAPI
import HTTPServer
import JSON
import Observability
import RefreshEngine
import Testing

@Suite("The internal routes", .timeLimit(.minutes(10)))
struct InternalRoutesTests {
    @Test(
        "answer their paths and methods, and say in one way what they do not have",
        arguments: [
            ("GET", "/v1/grants/42/token", "200 "), ("GET", "/v1/grants/nobody/token", "404 not_found"),
            ("POST", "/v1/grants/42/token/refresh", "400 invalid_request"), ("GET", "/healthz", "200 "),
            ("HEAD", "/healthz", "200 "), ("GET", "/readyz", "503 "), ("GET", "/status", "200 "),
            ("GET", "/metrics", "200 "), ("GET", "/", "404 unknown_path"),
            ("GET", "/v1/grants//token", "404 unknown_path"),
            ("POST", "/v1/grants/u/token", "405 method_not_allowed"), ("PUT", "/metrics", "405 method_not_allowed"),
        ]
    )
    func routes(method: String, path: String, expected: String) async throws {
        let world = try VendWorld()
        try await world.add(user: "42")
        let probes = Probes(
            store: world.store,
            database: DatabaseWatch(store: world.store, time: world.time),
            engine: world.engine,
            counters: world.counters.running,
            metrics: world.metrics,
            phase: world.phase,
            time: world.time,
            stalledLoops: { [] },
            statusReport: { "{}" }
        )
        let request = ServerRequest(
            method: method,
            path: path,
            headers: [("Authorization", "Bearer \(VendWorld.credential)")]
        )
        guard
            case .respond(let response) = await InternalRoutes(desk: world.desk, probes: probes).router.answer(request)
        else {
            Issue.record("no answer")
            return
        }
        #expect(VendAnswer(response).error == expected)
        #expect((response.status == 405) == response.headers.contains { $0.name == "Allow" })
    }
}
