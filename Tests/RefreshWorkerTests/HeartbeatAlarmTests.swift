import Crypto
import Telemetry
import Testing

@testable import Base
@testable import RefreshWorker
@testable import Scheduler
@testable import Storage

@Suite("The alarms of a worker about its database", .timeLimit(.minutes(10)))
struct HeartbeatAlarmTests {
    @Test("end with the first report that the database takes")
    func ended() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let worker = try await HeartbeatWorker(fixture)
            worker.log.reportStoreFailure(StoreError(.diskFull, "full"), waiting: 1)
            worker.log.reportStoreFailure(CryptoError.notSealed, waiting: 1)
            worker.log.incident(StoreIncident(kind: .tablesLost, text: "lost"))
            #expect(worker.currentAlarms == [.databaseTablesLost, .sealingFailed, .storeFailing])
            let (reports, reported) = AsyncStream<Void>.makeStream()
            let running = Task { await worker.heartbeat.run(by: fixture.time) { reported.yield() } }
            for await _ in reports { break }
            running.cancel()
            await running.value
            #expect(worker.currentAlarms == [])
            await worker.store.close()
        }
    }
}
