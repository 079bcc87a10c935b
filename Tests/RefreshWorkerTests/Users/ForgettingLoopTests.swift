import Base
import Crypto
import TestSupport
import Testing

@testable import RefreshWorker
@testable import Storage

@Suite("The loop that forgets ended grants", .timeLimit(.minutes(10)))
struct ForgettingLoopTests {
    @Test("runs at once and then daily, tries again after a failure, and ends with the worker")
    func loop() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try TestStore(time: fixture.time)
            try await fixture.insert(1...4, sealedBy: try fixture.openVault(), into: store)
            let (day, now) = (Duration.seconds(86_400), fixture.time.now)
            try await store.transact { transaction in
                for number in 1...3 {
                    var grant = try #require(try transaction.grant(ofUser: "user \(number)"))
                    // The first ended 30.5 days ago, and each of the others a day later.
                    _ = grant.disconnect(reason: .invalidGrant, at: now - day * (31.5 - Double(number)))
                    try transaction.update(grant)
                }
            }
            let context = try fixture.context([(.metricsLog, fixture.path("metrics")), (.logLevel, "error")])
            let worker = try WorkerParts(context, store: store, vault: try context.openVault())
            let loop = worker.start([{ await worker.forget(after: .seconds(30 * 86_400)) }])

            func forgotten() async throws -> [Int] {
                await fixture.time.sleepers(atLeast: 1, for: day)
                let grants = try await store.database.transact { transaction in
                    try (1...4).map { try transaction.grant(ofUser: "user \($0)")?.reason }
                }
                return (1...4).filter { grants[$0 - 1] == .forgotten }
            }
            #expect(try await forgotten() == [1])
            store.failTransactions(1)
            fixture.time.advance(by: day)
            #expect(try await forgotten() == [1])
            #expect(store.failed == 1)
            fixture.time.advance(by: day)
            #expect(try await forgotten() == [1, 2, 3])
            await worker.stop(loop)
            await loop.value
        }
    }
}
