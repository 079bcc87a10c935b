import GoogleOAuth
import Scheduler
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import HTTPServer
@testable import Routes
@testable import Status
@testable import Storage
@testable import Telemetry

@Suite("The status page", .timeLimit(.minutes(10)))
struct StatusPageHandlerTests {
    private let fixture: VendingFixture
    private let database: DatabaseReadiness

    init() async throws {
        fixture = try VendingFixture()
        database = DatabaseReadiness(store: fixture.store, time: fixture.time)
        await database.check()
    }

    private func page(
        _ observe: @escaping @Sendable (GrantStatistics) async throws -> StatusSnapshot
    ) async -> MonitoringHandler {
        let monitoring = fixture.monitoring(database: database, observe: observe)
        // The background has observed once.
        let loop = Task { await monitoring.status.run() }
        await fixture.time.sleepers(atLeast: 1, for: LiveStatus.interval)
        loop.cancel()
        await loop.value
        return monitoring
    }

    /// A snapshot of the grants, with one client and one worker.
    private func snapshot(_ grants: GrantStatistics) -> StatusSnapshot {
        var snapshot = StatusSnapshot.of(grants, at: fixture.time.now)
        var client = ClientStatus(id: "client")
        client.breaker = .open("invalid_client")
        client.ceiling = 12.5
        client.pause = .seconds(3)
        snapshot.clients = [client]
        snapshot.grants.expired.add(1, oldest: fixture.time.now, client: "only expired grants")
        snapshot.workers = []
        snapshot.notices = PendingNotices(count: 2, oldest: nil)
        return snapshot
    }

    @Test("shows what is stored, and what this worker did")
    func contents() async throws {
        try await fixture.add()
        fixture.phase.value = .serving
        let page = await page { grants in snapshot(grants) }
        let contents = await page.statusPage()
        #expect(contents.worker == "worker" && contents.version == "1.0" && contents.phase == "serving")
        #expect(contents.snapshot?.at == fixture.time.now)
        #expect(contents.snapshot?.grants.byState == [.active: 1])
        #expect(contents.snapshot?.workers?.isEmpty == true)
        #expect(contents.snapshot?.notices?.count == 2)
        #expect(contents.findings?.map(\.kind) == ["breaker_open", "client_paused"])
        #expect(contents.clients.map(\.id) == ["client"])
        #expect(contents.clients.first?.ceiling == 12.5)
        #expect(contents.clients.first?.breakerReason == "invalid_client")
        #expect(contents.lookup == nil)
    }

    @Test("shows no green label while requests are refused")
    func notReady() async throws {
        fixture.phase.value = .serving
        let page = await page { _ in .well }
        #expect(await page.statusPage().phase == "serving")
        await fixture.store.close()
        await database.check()
        let contents = await page.statusPage()
        #expect(contents.phase == "not ready")
        let html = contents.html
        #expect(html.contains(#"<span class="label bad">not ready</span>"#))
        #expect(!html.contains(#"<span class="label good">"#))
    }

    @Test("shows the refreshes and the changes of state of this worker")
    func activity() async throws {
        try await fixture.add(accessToken: nil)
        fixture.endpoint.setFailure(.endpointFault(code: "http_503"))
        _ = await fixture.send()
        let contents = await page { _ in .well }.statusPage()
        #expect(contents.activity.slots(by: .minute, at: fixture.time.now).last?.slot.failed == 1)
        #expect(contents.services["full"]?.errors == 1 && contents.services["full"]?.tokens == 0)
        #expect(contents.changes.map(\.to) == [.retrying])
    }

    @Test("adds the refreshes that other workers have stored")
    func otherWorkers() async throws {
        let now = fixture.time.now
        let others = RecentActivity("minute \(now.milliseconds / 60_000) 7 3 250")
        for _ in 0..<2 { #expect(try await others.publish(in: fixture.store, at: now)) }
        fixture.counters.record([CountedRefresh(outcome: .refreshed, lateness: .zero, latency: nil)])
        let contents = await page { _ in
            var snapshot = StatusSnapshot.well
            snapshot.activity = try await RecentActivity.read(from: fixture.store)
            return snapshot
        }.statusPage()
        let sum = RecentActivity.Slot(refreshed: 15, failed: 6, maximumLateness: .milliseconds(250))
        #expect(contents.activity.slots(by: .minute, at: now).last?.slot == sum)
    }

    @Test("has headers that forbid scripts, frames and caches")
    func headers() async throws {
        let response = await page { _ in .well }.page()
        #expect(response.status == 200)
        let headers = Dictionary(uniqueKeysWithValues: response.headers.map { ($0.name, $0.value) })
        #expect(headers["Content-Type"] == "text/html; charset=utf-8")
        #expect(headers["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
        #expect(headers["Cache-Control"] == "no-store")
        #expect(headers["X-Content-Type-Options"] == "nosniff")
        #expect(headers["X-Frame-Options"] == "DENY")
        #expect(headers["Referrer-Policy"] == "no-referrer")
        #expect(headers["Cross-Origin-Opener-Policy"] == "same-origin")
        #expect(headers["Cross-Origin-Resource-Policy"] == "same-origin")
        #expect(String(decoding: response.body, as: UTF8.self).hasPrefix("<!DOCTYPE html>"))
    }

    @Test("asks the database once for many requests")
    func cached() async throws {
        let asked = Mutex(0)
        let page = await page { grants in
            asked.withLock { $0 += 1 }
            return snapshot(grants)
        }
        for _ in 0..<100 { _ = await page.page() }
        #expect(asked.withLock { $0 } == 1)
        try await fixture.add()
        fixture.time.advance(by: LiveStatus.interval)
        await database.check()
        #expect(await page.statusPage().snapshot?.grants.grants == 0)
        try await poll { asked.withLock { $0 } == 2 }
    }

    @Test(
        "waits a second for a database that does not answer, then shows the last counts, and at once when it is known"
    )
    func hanging() async throws {
        let isHanging = Mutex(false)
        let page = await page { grants in
            if isHanging.withLock({ $0 }) {
                let (never, end) = AsyncStream<Void>.makeStream()
                for await _ in never {}
                end.finish()
            }
            return snapshot(grants)
        }
        let first = try #require(await page.statusPage().snapshot?.at)
        isHanging.withLock { $0 = true }
        // Nothing has noticed the fault yet: the last counts do not say that all is well.
        fixture.time.advance(by: .seconds(60))
        await database.check()
        async let waiting = page.statusPage()
        await fixture.time.sleepers(atLeast: 1, for: LiveStatus.waitOfPeople)
        fixture.time.advance(by: LiveStatus.waitOfPeople)
        var contents = await waiting
        #expect(contents.snapshot?.at == first && contents.findings == nil)
        #expect(contents.judgedAt == contents.at, "no judgement is older than five seconds")
        // The check has noticed it.
        fixture.time.advance(by: .seconds(60))
        contents = await page.statusPage()
        #expect(contents.snapshot?.at == first)
        #expect(contents.findings?.map(\.kind) == ["database_unusable"])
        #expect(contents.clients.map(\.id) == ["client"])
        // Counts of ten minutes ago are worse than none; what the worker knows itself is shown.
        fixture.time.advance(by: .seconds(600))
        let last = await page.statusPage()
        #expect(last.snapshot == nil)
        #expect(last.findings?.isEmpty == false)
    }

    /// A snapshot in which nothing is wrong with the client.
    private func calm(_ grants: GrantStatistics) -> StatusSnapshot {
        var snapshot = StatusSnapshot.of(grants, at: fixture.time.now)
        snapshot.clients = [ClientStatus(id: "client")]
        return snapshot
    }

    @Test("shows a breaker at once that this worker has seen opening, beside the time of the judgement")
    func openedBreaker() async throws {
        try await fixture.add(accessToken: nil)
        let page = await page { grants in calm(grants) }
        let observedAt = fixture.time.now
        #expect(await page.statusPage().findings == [])
        fixture.time.advance(by: .seconds(1))
        await database.check()
        fixture.endpoint.setFailure(.clientFault(code: "invalid_client"))
        _ = await fixture.send()
        let contents = await page.statusPage()
        #expect(contents.at == observedAt + .seconds(1) && contents.judgedAt == observedAt)
        #expect(contents.findings?.map(\.kind) == ["breaker_open", "grants_expired"])
        #expect(contents.clients.map(\.breakerReason) == ["invalid_client"])
        #expect(contents.clients.first?.failures.map(\.code) == ["invalid_client"])
        let readiness = ParsedResponse(await page.readiness())
        #expect(readiness["concerns"]?.array?.map { $0["kind"]?.string } == ["breaker_open", "grants_expired"])
    }

    @Test("is judged from what was read five seconds before at most: it waits a moment for a newer snapshot")
    func recentJudgement() async throws {
        let page = await page { grants in calm(grants) }
        let observedAt = fixture.time.now
        fixture.time.advance(by: .seconds(5))
        await database.check()
        #expect(await page.statusPage().judgedAt == observedAt)
        fixture.time.advance(by: .seconds(6))
        await database.check()
        let contents = await page.statusPage()
        #expect(contents.judgedAt == fixture.time.now && contents.findings == [])
    }

    @Test("shows the clients as this worker knows them while the database was never read")
    func withoutCounts() async throws {
        try await fixture.add(accessToken: nil)
        fixture.endpoint.setFailure(.clientFault(code: "invalid_client"))
        _ = await fixture.send()
        let contents = await page { _ in throw StoreError(.busy, "busy") }.statusPage()
        #expect(contents.snapshot == nil)
        let client = try #require(contents.clients.first)
        #expect(client.id == "client" && client.breaker.name == "open")
    }
}
