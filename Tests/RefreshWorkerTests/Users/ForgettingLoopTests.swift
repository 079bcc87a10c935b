import Base
import Crypto
import TestSupport
import Testing

@testable import RefreshWorker
@testable import Storage

@Suite("The loop that forgets ended grants", .timeLimit(.minutes(10)))
struct ForgettingLoopTests {
    private let hour = Duration.seconds(3600)
    private let day = Duration.seconds(86_400)

    /// Runs the loop with a retention of 30 days over four grants, and gives the body a function that waits until the
    /// loop sleeps for a day, and returns which are forgotten.
    private func withLoop(
        _ body: (ManualTime, TestStore, _ forgotten: () async throws -> [Int]) async throws -> Void
    ) async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try TestStore(time: fixture.time)
            try await fixture.insert(1...4, sealedBy: try fixture.openVault(), into: store)
            let now = fixture.time.now
            let reading = ClockReading(now: now, sinceBoot: fixture.time.sinceBoot, bootID: store.bootID)
            try await store.record(reading)
            try await store.transact { transaction in
                for number in 1...3 {
                    var grant = try #require(try transaction.grant(ofUser: "user \(number)"))
                    // The first ended 30.5 days ago, and each of the others a day later.
                    _ = grant.disconnect(reason: .invalidGrant, at: now - day * (31.5 - Double(number)))
                    try transaction.update(grant)
                }
            }
            let context = try fixture.context([(.metricsLog, fixture.path("metrics")), (.logLevel, "error")])
            let worker = try await Worker(context, store: store, vault: try context.openVault())
            let loop = worker.start([{ await worker.forget(after: .seconds(30 * 86_400)) }])

            func forgotten() async throws -> [Int] {
                await fixture.time.sleepers(atLeast: 1, for: day)
                let grants = try await store.database.transact { transaction in
                    try (1...4).map { try transaction.grant(ofUser: "user \($0)")?.reason }
                }
                return (1...4).filter { grants[$0 - 1] == .forgotten }
            }
            await fixture.time.sleepers(atLeast: 1, for: hour)
            try await body(fixture.time, store, forgotten)
            await worker.stop(loop)
            await loop.value
        }
    }

    @Test("runs after an hour and then daily, tries again after a failure, and ends with the worker")
    func loop() async throws {
        try await withLoop { time, store, forgotten async throws in
            #expect(try await store.grant(ofUser: "user 1")?.reason == .invalidGrant)
            time.advance(by: hour)
            #expect(try await forgotten() == [1])
            store.failTransactions(1)
            time.advance(by: day)
            #expect(try await forgotten() == [1])
            #expect(store.failed == 1)
            time.advance(by: day)
            #expect(try await forgotten() == [1, 2, 3])
        }
    }

    @Test("does not believe a clock that was stepped forward: before the start, in the first hour, or later")
    func clockAhead() async throws {
        try await withLoop { time, _, forgotten async throws in
            time.stepWallClock(by: day * 400)
            time.advance(by: hour)
            #expect(try await forgotten() == [1])
            time.stepWallClock(by: day * 400)
            time.advance(by: day)
            #expect(try await forgotten() == [1, 2])
            time.stepWallClock(by: day * -800)
            time.advance(by: day)
            #expect(try await forgotten() == [1, 2, 3])
        }
    }
}
