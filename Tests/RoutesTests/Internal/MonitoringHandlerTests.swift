import Glibc
import GoogleOAuth
import Scheduler
import Status
import Storage
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import HTTPServer
@testable import Routes

@Suite("Health, readiness, status and metrics", .timeLimit(.minutes(10)))
struct MonitoringHandlerTests {
    private func monitoring(
        _ fixture: VendingFixture,
        stalled: [String] = [],
        observed: StatusSnapshot? = nil
    ) async -> MonitoringHandler {
        let database = DatabaseReadiness(store: fixture.store, time: fixture.time)
        await database.check()
        return fixture.monitoring(database: database, stalled: stalled) { grants in
            observed ?? .of(grants, at: fixture.time.now)
        }
    }

    @Test("The process is healthy while its loops run")
    func health() async throws {
        let fixture = try VendingFixture()
        #expect(await monitoring(fixture).health().status == 200)
        let stalled = await monitoring(fixture, stalled: ["scan", "http"]).health()
        #expect(stalled.status == 503)
        #expect(String(decoding: stalled.body, as: UTF8.self) == "stalled: scan, http\n")
    }

    @Test(
        "It is ready only while it serves",
        arguments: [(ServingPhase.starting, 503), (.serving, 200), (.draining, 503)]
    )
    func readiness(phase: ServingPhase, status: Int) async throws {
        let fixture = try VendingFixture()
        fixture.phase.value = phase
        let response = ParsedResponse(await monitoring(fixture).readiness())
        #expect(response.status == status)
        #expect(response["ready"]?.bool == (status == 200))
        #expect(response["checks"]?["phase"]?.string == phase.rawValue)
        #expect(response["checks"]?["database"]?.string == "ok")
    }

    @Test("An outage of Google is shown in the body and does not make the worker unready")
    func outage() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(accessToken: nil)
        fixture.endpoint.setFailure(.clientFault(code: "invalid_client"))
        _ = await fixture.send()
        fixture.phase.value = .serving
        let response = ParsedResponse(await monitoring(fixture).readiness())
        #expect(response.status == 200)
        let client = try #require(response["clients"]?.array?.first)
        #expect(client["client_id"]?.string == "client" && client["breaker"]?.string == "open")
    }

    @Test("Observations that are too old say nothing, and what the process knows itself is shown")
    func oldObservations() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(accessToken: nil)
        fixture.endpoint.setFailure(.clientFault(code: "invalid_client"))
        _ = await fixture.send()
        let handler = await monitoring(fixture)
        let process = await handler.status.process()
        var observed = StatusSnapshot.well
        observed.freeSpace = 0
        for (age, kinds) in [(30, ["disk_nearly_full", "client_fault"]), (31, ["client_fault"])] {
            observed.at = fixture.time.now + .seconds(-age)
            #expect(handler.status.findings(of: process, and: observed)?.map(\.kind) == kinds)
            #expect((handler.status.findings(of: ProcessStatus(), and: observed) == nil) == (age == 31))
        }
    }

    @Test("Without its database it is not ready, and the metrics say that it is down")
    func database() async throws {
        let fixture = try VendingFixture()
        fixture.phase.value = .serving
        await fixture.store.close()
        let response = ParsedResponse(await monitoring(fixture).readiness())
        #expect(response.status == 503)
        #expect(response["checks"]?["database"]?.string == "closed")
        let metrics = await monitoring(fixture).prometheus()
        #expect(metrics.status == 200)
        #expect(String(decoding: metrics.body, as: UTF8.self).contains("refresh_worker_store_up 0\n"))
        #expect(await fixture.send().error == "503 store_unavailable")
    }

    @Test("A database that does not count the grants in time is up, and the metrics leave the grants out")
    func timedOutCounts() async throws {
        let fixture = try VendingFixture()
        let database = DatabaseReadiness(store: fixture.store, time: fixture.time)
        let handler = fixture.monitoring(database: database) { _ in
            var snapshot = StatusSnapshot.well
            snapshot.timedOutCounts = [.grants]
            return snapshot
        }
        let text = String(decoding: await handler.prometheus().body, as: UTF8.self)
        #expect(text.contains("refresh_worker_store_up 1\n"))
        #expect(!text.contains("refresh_worker_grants"))
    }

    @Test("Readiness shows the verdict and its concerns, which do not make the worker unready")
    func concerns() async throws {
        let fixture = try VendingFixture()
        fixture.phase.value = .serving
        var observed = StatusSnapshot(at: fixture.time.now)
        observed.freeSpace = 0
        let handler = await monitoring(fixture, observed: observed)
        // The first answer does not wait for the judgement.
        var response = ParsedResponse(await handler.readiness())
        while response["verdict"]?.string == "unknown" {
            await Task.yield()
            response = ParsedResponse(await handler.readiness())
        }
        #expect(response.status == 200)
        #expect(response["verdict"]?.string == "soon")
        #expect(response["concerns"]?.array?.first?["kind"]?.string == "disk_nearly_full")
    }

    @Test("The first answer after a silence is judged from what is stored now, and says how old that is")
    func silence() async throws {
        let fixture = try VendingFixture()
        fixture.phase.value = .serving
        let isFailing = Mutex(false)
        let time = fixture.time
        let database = DatabaseReadiness(store: fixture.store, time: time)
        let handler = fixture.monitoring(database: database) { grants in
            var observed = StatusSnapshot.of(grants, at: time.now)
            observed.clients = [ClientStatus(id: "client")]
            if isFailing.withLock({ $0 }) { observed.clients[0].breaker = .open("endpoint_failing") }
            return observed
        }
        await database.check()
        let loop = Task { await handler.status.run() }
        await time.sleepers(atLeast: 1, for: LiveStatus.interval)
        #expect(ParsedResponse(await handler.readiness())["verdict"]?.string == "ok")
        isFailing.withLock { $0 = true }
        time.advance(by: .seconds(150))
        await time.sleepers(atLeast: 1, for: LiveStatus.interval)
        await database.check()
        time.advance(by: .seconds(1))
        let response = ParsedResponse(await handler.readiness())
        #expect(response["concerns"]?.array?.map { $0["kind"]?.string } == ["breaker_open"])
        #expect(response["observed_at"]?.string == (time.now - .seconds(1)).iso8601)
        #expect(response["at"]?.string == time.now.iso8601)
        loop.cancel()
        await loop.value
    }

    @Test("A status that cannot be read is logged once, and once more when it can be read again")
    func unreadable() async throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let fixture = try VendingFixture(logLevel: .notice, logDescriptor: ends[1])
        let time = fixture.time
        let reads = Mutex(0)
        let handler = fixture.monitoring(database: DatabaseReadiness(store: fixture.store, time: time)) { grants in
            reads.withLock { $0 += 1 }
            if (2...4).contains(reads.withLock { $0 }) { throw StoreError(.busy, "busy") }
            return .of(grants, at: time.now)
        }
        let loop = Task { await handler.status.run() }
        for _ in 0..<6 {
            await time.sleepers(atLeast: 1, for: LiveStatus.interval)
            time.advance(by: LiveStatus.interval)
        }
        await time.sleepers(atLeast: 1, for: LiveStatus.interval)
        loop.cancel()
        await loop.value
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(ends[0], &bytes, bytes.count)
        let lines = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 2 && reads.withLock { $0 } == 7)
        #expect(lines.first?.contains(" warning the status cannot be read from the database error=") == true)
        #expect(lines.last?.hasSuffix(" notice the status can be read again") == true)
    }

    @Test("The status is the report, or 503 without one")
    func status() async throws {
        let fixture = try VendingFixture()
        try await fixture.add()
        let report = ParsedResponse(await monitoring(fixture).report())
        #expect(report.status == 200 && report["grants"]?["total"]?.integer == 1)
        let database = DatabaseReadiness(store: fixture.store, time: fixture.time)
        let none = await fixture.monitoring(database: database) { _ in throw StoreError(.busy, "busy") }.report()
        #expect(none.status == 503)
        #expect(!String(decoding: none.body, as: UTF8.self).contains("busy"))
    }

    @Test("Metrics count events, and do not contain user ids")
    func metrics() async throws {
        let fixture = try VendingFixture()
        try await fixture.add(user: "u/1", accessToken: nil)
        try await fixture.add(user: "u/2")
        _ = await fixture.send()
        let response = await monitoring(fixture).prometheus()
        #expect(response.headers.first?.value == "text/plain; version=0.0.4; charset=utf-8")
        let text = String(decoding: response.body, as: UTF8.self)
        for line in [
            #"refresh_worker_vends_total{outcome="refreshed"} 1"#,
            #"refresh_worker_refreshes_total{outcome="refreshed"} 1"#,
            #"refresh_worker_grants{state="active"} 2"#, "refresh_worker_grants_overdue 1", "refresh_worker_store_up 1",
            #"refresh_worker_breaker_state{client="client",state="closed"} 1"#,
        ] {
            #expect(text.contains("\(line)\n"), "\(line)")
        }
        #expect(!text.contains("u/1"))
    }
}
