import GoogleOAuth
import Storage
import Synchronization
import Telemetry
import TestSupport

@testable import Base
@testable import Crypto
@testable import RefreshWorker
@testable import Scheduler

/// A worker's heartbeat, and the alarms that it raised.
struct HeartbeatWorker: Sendable {
    let store: SQLiteStore
    let vault: TokenVault
    let heartbeat: WorkerHeartbeat
    let log: EngineLog
    private let lines = AlarmLines()

    init(_ fixture: OperatorFixture, named name: String = "right", keyFile: String? = nil) async throws {
        let path = keyFile ?? fixture.keyFile
        let vault = TokenVault(ring: try ReloadableKeyRing { try KeyRingFile.load(path: path) })
        try await self.init(fixture, named: name, vault: vault)
    }

    init(_ fixture: OperatorFixture, named name: String = "right", vault: TokenVault) async throws {
        store = try fixture.openStore()
        self.vault = vault
        log = EngineLog(
            metrics: MetricsLog(sink: lines, worker: name, time: fixture.time),
            diagnostics: DiagnosticLog(level: .error, time: fixture.time, descriptor: -1),
            counters: EventCounters(time: fixture.time),
            time: fixture.time
        )
        let engine = RefreshEngine(
            store: store,
            endpoint: SilentGoogle(),
            vault: vault,
            configuration: EngineConfiguration(workerName: name),
            time: fixture.time,
            random: SystemRandom(),
            log: log
        )
        heartbeat = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: name,
            diagnostics: DiagnosticLog(level: .error, time: fixture.time, descriptor: -1),
            log: log,
            engine: engine
        )
    }

    var alarms: [String] { lines.kinds }
    var currentAlarms: [AlarmKind] { log.currentAlarms.map(\.kind) }

    func report() async throws { try await heartbeat.report() }

    func stop() async {
        await heartbeat.leave()
        await store.close()
    }
}

/// A sink that keeps the kinds of the alarms among metrics lines.
private final class AlarmLines: LineSink {
    private let state = Mutex<[String]>([])

    var droppedLines: Int { 0 }

    var kinds: [String] { state.withLock { $0 } }

    func write(_ line: JSONLine) -> Bool {
        let members = JSONValue.object(in: line.bytes)?.object
        guard members?["event"]?.string == "alarm", let kind = members?["kind"]?.string else { return true }
        state.withLock { $0.append(kind) }
        return true
    }
}

private struct SilentGoogle: PartialGoogle {}
