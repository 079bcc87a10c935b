import Crypto
import Foundation
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Status
@testable import Storage

@Suite("Alarms of other processes")
struct PublishedAlarmsTests {
    private static let key = KeyID.named("00000001")
    private let time: ManualTime
    private let store: TestStore

    init() throws {
        time = ManualTime()
        store = try TestStore(time: time)
    }

    private func alarm(_ kind: AlarmKind, client: String = "", lasting span: Duration = .seconds(3600)) -> CurrentAlarm
    {
        CurrentAlarm(kind: kind, client: client, text: "text", since: time.now, until: time.now + span, count: 1)
    }

    private func read(living: [String] = [], after span: Duration = .zero) async throws -> [AlarmKind] {
        let workers = living.map { WorkerReport(id: $0, keyIDs: [], sealingKeyID: Self.key) }
        return try await PublishedAlarms.read(from: store, living: workers, at: time.now + span).map(\.kind)
    }

    @Test("are read as they were published, each cause once, until they end")
    func published() async throws {
        #expect(try await read() == [])
        let (fault, loop) = (alarm(.clientFault, client: "c"), alarm(.refreshLoop, lasting: .seconds(60)))
        try await PublishedAlarms.publish([fault, loop], of: "a", in: store, at: time.now)
        try await PublishedAlarms.publish([fault], of: "b", in: store, at: time.now)
        #expect(try await read(living: ["a"]) == [.clientFault, .refreshLoop])
        #expect(try await read(living: ["a"], after: .seconds(60)) == [.clientFault])
        try await PublishedAlarms.publish([], of: "a", in: store, at: time.now)
        #expect(try await read() == [.clientFault])
        try await PublishedAlarms.publish([], of: "b", in: store, at: time.now)
        #expect(try await read() == [])
    }

    @Test("end with their worker if only it can look at their cause, or if another worker looks at it")
    func endedWorker() async throws {
        let alarms = AlarmKind.allCases.map { alarm($0) }
        try await PublishedAlarms.publish(alarms, of: "a", in: store, at: time.now)
        #expect(try await read(living: ["a"]) == AlarmKind.allCases)
        let afterRestart = try await read(living: ["b"])
        let withoutWorker = try await read(living: [])
        for kind in [AlarmKind.keyFileUnreadable, .keyRingRefused, .certificateExpired, .storeReplaced] {
            #expect(!afterRestart.contains(kind) && !withoutWorker.contains(kind), "\(kind)")
        }
        #expect(!afterRestart.contains(.databaseRowsLost) && withoutWorker.contains(.databaseRowsLost))
        #expect(afterRestart.contains(.rotatedTokensDropped), "it has happened, whoever saw it")
    }

    @Test("are published after a change and when their end has moved, and not for each new count")
    func publication() {
        #expect(!PublishedAlarms.mustPublish([], after: []))
        let former = alarm(.clientFault)
        #expect(PublishedAlarms.mustPublish([former], after: []))
        var fault = former
        fault.count += 1
        fault.until = fault.until + .seconds(240)
        #expect(!PublishedAlarms.mustPublish([fault], after: [former]))
        fault.until = fault.until + .seconds(1)
        #expect(PublishedAlarms.mustPublish([fault], after: [former]))
        #expect(PublishedAlarms.mustPublish([], after: [former]))
    }
}
