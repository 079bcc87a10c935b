import Base
import Crypto
import GoogleOAuth
import Storage
import TestSupport
import Testing

@testable import Scheduler

/// Three workers whose successes are stored with the health of the client, or without it as on PostgreSQL.
@Suite("Workers share the health of a client", .timeLimit(.minutes(10)))
struct SharedHealthTests {
    /// Three workers on one store, with grants that are refreshed every few minutes, after a quarter of an hour of
    /// successes.
    private struct Site {
        let fixture: EngineFixture
        let engines: [RefreshEngine]

        init(seed: UInt64, plain: Bool, grants: Int = 500) async throws {
            let fixture = try EngineFixture(seed: seed, lifetime: .seconds(300), isSharedByWorkers: plain)
            self.fixture = fixture
            engines = ["first", "second", "third"].map { fixture.engine($0, maxRate: 600) }
            let reports = ["first", "second", "third"].map {
                WorkerReport(
                    id: $0,
                    keyIDs: [],
                    sealingKeyID: fixture.vault.ring.current.sealingKeyID,
                    isRefreshing: true
                )
            }
            for engine in engines { await engine.updateShare(among: reports) }
            try await fixture.add(0..<grants)
            await run(for: 900, grain: .seconds(1))
        }

        func run(for seconds: Int, grain: Duration = .milliseconds(500), without killed: Int = 0) async {
            await fixture.run(Array(engines.dropFirst(killed)), for: .seconds(seconds), grain: grain)
        }

        /// The number of grants that were ever ended, recalled or not.
        func everEnded() async throws -> Int {
            var count = 0
            for grant in try await fixture.grants() {
                let events = try await fixture.store.database.events(of: grant.id, atMost: 100)
                if events.contains(where: { $0.to == .disconnected }) { count += 1 }
            }
            return count
        }
    }

    private func wave(plain: Bool) async throws -> (ended: Int, calls: Int, transactions: Int) {
        let site = try await Site(seed: 60, plain: plain)
        site.fixture.google.answer { request in
            let draw = (request.account &* 7919 &+ request.count &* 104_729) % 1_000
            return draw < 200 ? .answer(.invalidGrant) : .grant
        }
        await site.run(for: 300)
        site.fixture.google.answer { _ in .grant }
        await site.run(for: 3_300, grain: .seconds(5))
        #expect(try await site.fixture.states() == [.active: 500])
        return (try await site.everEnded(), site.fixture.google.calls, site.fixture.store.transactions)
    }

    @Test("A wave ends no grant for good, and no more of them before it is recognised if successes are plain")
    func waves() async throws {
        async let first = wave(plain: false)
        async let second = wave(plain: true)
        let (together, apart) = try await (first, second)
        #expect(apart.ended <= together.ended)
        #expect(apart.calls == together.calls)
        #expect(apart.transactions < together.transactions - 500, "many batches were plain")
    }

    @Test("Ends that a worker stored just before it was killed are undone by the wave that the others see")
    func killedInWave() async throws {
        let site = try await Site(seed: 61, plain: false, grants: 150)
        site.fixture.google.answer { request in
            let draw = (request.account &* 7919 &+ request.count &* 104_729) % 1_000
            return draw < 200 ? .answer(.invalidGrant) : .grant
        }
        // Only the first worker runs until it has ended a grant, and never again.
        for _ in 0..<300 where try await site.everEnded() == 0 {
            await site.fixture.run(site.engines[0], for: .milliseconds(500))
        }
        #expect(try await site.everEnded() > 0)
        await site.run(for: 300, without: 1)
        site.fixture.google.answer { _ in .grant }
        await site.run(for: 1_500, grain: .seconds(5), without: 1)
        #expect(try await site.fixture.states() == [.active: 150])
    }
}
