import TestSupport
import Testing

@testable import Base
@testable import Status
@testable import Storage

@Suite("The readiness of the database")
struct DatabaseReadinessTests {
    private let time: ManualTime
    private let store: TestStore

    init() throws {
        time = ManualTime()
        store = try TestStore(time: time)
    }

    @Test("shows the last check without waiting for the database, and only while it is recent")
    func lastCheck() async throws {
        let readiness = DatabaseReadiness(store: store, time: time)
        #expect(readiness.problem == "not_checked" && readiness.sinceLastSuccess == nil)
        await readiness.check()
        #expect(readiness.problem == nil && readiness.sinceLastSuccess == .zero)
        await store.close()
        #expect(readiness.problem == nil)
        // A check that stalls counts as failed once its time is over.
        time.advance(by: DatabaseReadiness.interval + DatabaseReadiness.timeout)
        #expect(readiness.problem == nil)
        time.advance(by: .milliseconds(1))
        #expect(readiness.problem == "no_answer" && readiness.sinceLastSuccess == .milliseconds(5_001))
        await readiness.check()
        #expect(readiness.problem == "closed" && readiness.sinceLastSuccess == .milliseconds(5_001))
    }
}
