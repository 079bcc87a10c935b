import Crypto
import Foundation
import Telemetry
import Testing

@testable import Base
@testable import Commands
@testable import Scheduler
@testable import Status
@testable import Storage
@testable import Worker

@Suite("Status")
struct StatusReportTests {
    private static let key = KeyID.named("00000001")
    private static let worker = WorkerReport(id: "12-ab", keyIDs: [key], sealingKeyID: key)
    private static let now = ManualTime().now
    private static let boot = BootInstant(milliseconds: 50_000)

    /// A report without concerns.
    private static var withoutConcerns: StatusReport {
        StatusReport(
            at: now,
            statistics: GrantStatistics(
                byState: [.active: 3],
                due: 0,
                oldestDueAt: nil,
                refreshTokensEnding: 0,
                idle: 0
            ),
            clients: [client(ClientHealth(epoch: "e"))],
            workers: [worker],
            keysInUse: [key: 6],
            keyRing: KeyRingSummary(sealing: key),
            database: StatusReport.Database(path: "/d", bytes: 4096, schema: 1)
        )
    }

    private static let spilled = SpilledFile(
        path: "/d.unsaved-1-a",
        isSetAside: false,
        writtenAt: now - .seconds(3660),
        results: nil
    )
    private static let setAside = SpilledFile(
        path: "/d.set-aside-1-a",
        isSetAside: true,
        writtenAt: now - .seconds(3660),
        results: 2
    )

    private static func client(_ health: ClientHealth) -> StatusReport.Client {
        StatusReport.Client(id: "c", health: health, maxRate: 200, at: boot, wallClock: now)
    }

    private static func changed(_ change: (inout StatusReport) -> Void) -> StatusReport {
        var report = withoutConcerns
        change(&report)
        return report
    }

    @Test("there are no concerns if all is well")
    func well() {
        #expect(Self.withoutConcerns.judgement.concerns == [])
        #expect(Self.withoutConcerns.text.contains("verdict    all is well"))
    }

    @Test(
        "each problem is a concern of its own",
        arguments: [
            ("no worker", changed { $0.due(for: .seconds(601), workers: []) }, "no worker is running"),
            ("late", changed { $0.due(for: .seconds(61), workers: [worker]) }, "waited 1 min 1 s"),
            (
                "breaker", changed { $0.clients = [client(failing)] },
                "nothing is sent for client 'c': invalid_client"
            ),
            ("wave", changed { $0.clients = [client(wave)] }, "a wave of invalid_grant for client 'c'"),
            ("pause", changed { $0.clients = [client(paused)] }, "pause for 20 s"),
            ("throttled", changed { $0.clients = [client(throttled)] }, "throttled client 'c'"),
            (
                "expired", changed { $0.expired(5, for: .seconds(61)) },
                "without a valid access token: 5, the oldest for 1 min"
            ),
            ("retrying", changed { $0.statistics.byState[.retrying] = 3 }, "3 of 6 connected grants (50 %)"),
            ("ending", changed { $0.statistics.refreshTokensEnding = 2 }, "end within three days: 2"),
            ("idle", changed { $0.statistics.idle = 4 }, "at six: 4"),
            ("waits", changed { $0.spilledFiles = [spilled] }, "run: refresh-worker results recover /d.unsaved-1-a"),
            (
                "set aside", changed { $0.spilledFiles = [setAside] },
                "2 results in /d.set-aside-1-a could not all be stored, 1 h 1 min ago"
            ),
            ("no ring", changed { $0.keyRing = nil }, "key ring cannot be read"),
            ("lost key", changed { $0.keysInUse[KeyID.named("0000000f")] = 2 }, "2 tokens sealed with key 0000000f"),
            (
                "unfinished rotation",
                changed { $0.keyRing = KeyRingSummary(sealing: key, pending: [KeyID.named("00000002")]) },
                "rotation to key 00000002"
            ),
        ] as [(String, StatusReport, String)]
    )
    func concern(situation: String, report: StatusReport, text: String) {
        let concerns = report.judgement.concerns
        #expect(concerns.count == 1, "\(situation)")
        #expect(concerns.first?.text.contains(text) == true, "\(situation): \(concerns)")
        #expect(report.text.contains("needs attention"))
    }

    @Test("a short lateness is not a concern, with a worker or before cron's next pass")
    func tolerance() {
        #expect(Self.changed { $0.due(for: .seconds(60), workers: [Self.worker]) }.judgement.isWell)
        let betweenPasses = Self.changed {
            $0.due(for: .seconds(600), workers: [])
            $0.lastPassAt = Self.now - .seconds(120)
        }
        #expect(betweenPasses.judgement.isWell)
    }

    private static var failing: ClientHealth {
        let state = Breaker.State.open(
            reason: .clientFault("invalid_client"),
            since: boot,
            nextProbe: boot + .seconds(4),
            probes: 2
        )
        return ClientHealth(epoch: "e", breaker: Breaker(state: state))
    }

    private static var wave: ClientHealth {
        ClientHealth(epoch: "e", recentAnswers: RecentAnswers(answers: Array(repeating: true, count: 30)))
    }

    private static var paused: ClientHealth {
        ClientHealth(epoch: "e", limits: Pacer.Limits(pausedUntil: boot + .seconds(20)))
    }

    private static var throttled: ClientHealth {
        ClientHealth(epoch: "e", limits: Pacer.Limits(cut: Pacer.Cut(ceiling: 10, at: boot)))
    }

    @Test("the JSON is one object with the report's fields")
    func json() throws {
        let report = Self.changed {
            $0.clients = [Self.client(Self.failing)]
            $0.due(for: .seconds(90), workers: [Self.worker])
            $0.spilledFiles = [Self.setAside]
        }
        let object = try #require(JSONValue.object(in: report.json.bytes))
        #expect(object["verdict"]?.string == "attention")
        #expect(object["concerns"]?.array?.count == 3)
        #expect(object["grants"]?["total"]?.integer == 3)
        #expect(object["grants"]?["active"]?.integer == 3)
        #expect(object["grants"]?["disconnected"]?.integer == 0)
        #expect(object["due"]?.integer == 1)
        #expect(object["oldest_due_at"]?.string == "2027-01-15T07:58:30.000Z")
        let client = try #require(object["clients"]?.array?.first)
        #expect(client["client_id"]?.string == "c")
        #expect(client["breaker"]?.string == "open")
        #expect(client["breaker_reason"]?.string == "invalid_client")
        #expect(client["next_probe_ms"]?.integer == 4000)
        #expect(client["ceiling_per_s"]?.integer == 200)
        #expect(client["pause_ms"] == .null)
        let worker = try #require(object["workers"]?.array?.first)
        #expect(worker["id"]?.string == "12-ab")
        #expect(worker["keys"]?.array == [.string("00000001")])
        #expect(object["keys"]?.array?.first?["tokens"]?.integer == 6)
        #expect(object["keys"]?.array?.first?["in_ring"]?.bool == true)
        let file = try #require(object["spill_files"]?.array?.first)
        #expect(file["path"]?.string == "/d.set-aside-1-a")
        #expect(file["set_aside"]?.bool == true)
        #expect(file["written_at"]?.string == "2027-01-15T06:59:00.000Z")
        #expect(file["results"]?.integer == 2)
        #expect(report.text.contains("spilled    /d.set-aside-1-a, SET ASIDE, results: 2"))
        #expect(object["database"]?["schema"]?.integer == 1)
    }

    @Test("docs/status.md lists exactly the existing fields")
    func document() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let document = folder.appending(path: "../../../docs/status.md").standardized
        let text = try String(contentsOf: document, encoding: .utf8)
        let listed = text.split(separator: "\n").filter { $0.hasPrefix("| `") }
            .compactMap { $0.split(separator: "`").dropFirst().first.map(String.init) }
        let object = try #require(JSONValue.object(in: Self.changed { $0.spilledFiles = [Self.spilled] }.json.bytes))
        let nested = [
            object["concerns"]?.array?.first, object["clients"]?.array?.first, object["workers"]?.array?.first,
            object["keys"]?.array?.first,
            object["spill_files"]?.array?.first, object["database"],
        ]
        let tables = [try #require(object.object)] + nested.compactMap { $0?.object }
        #expect(tables.count == 7)
        #expect(listed.sorted() == tables.flatMap(\.keys).sorted())
    }

    @Test("a database is described while another process has it open")
    func database() async throws {
        try await OperatorFixture.with { fixture in
            let key = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try fixture.openStore()
            try await fixture.insert(1...3, sealedBy: try fixture.openVault(), into: store)
            _ = try await store.report(WorkerReport(id: "daemon", keyIDs: [key], sealingKeyID: key))
            let report = try await fixture.context([(.clientID, "configured")]).statusReport()
            await store.close()
            #expect(report.statistics.grants == 3)
            #expect(report.clients.map(\.id) == ["configured"])
            #expect(report.workers.map(\.id) == ["daemon"])
            #expect(report.keysInUse == [key: 6])
            #expect(report.keyRing == KeyRingSummary(sealing: key))
            #expect(report.database.schema == 1)
            #expect(report.database.bytes > 0)
        }
    }

    @Test("an alarm about a client id ends when its last grant has moved to another, whoever raised it")
    func alarmOfMovedClient() async throws {
        try await OperatorFixture.with { fixture in
            let key = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try fixture.openStore()
            try await fixture.insert(1...1, sealedBy: try fixture.openVault(), into: store)
            _ = try await store.report(WorkerReport(id: "daemon", keyIDs: [key], sealingKeyID: key))
            let now = fixture.time.now
            let alarms = ["client", "other"].map { id in
                CurrentAlarm(
                    kind: .clientUnproven,
                    client: id,
                    text: "text",
                    since: now,
                    until: now + .seconds(3600),
                    count: 1
                )
            }
            try await PublishedAlarms.publish(alarms, of: "ended", in: store, at: now)
            // The client id without a grant is still configured, as it is after `grants set-client`.
            let report = try await fixture.context([(.clientID, "client"), (.clientID, "other")]).statusReport(
                from: store
            )
            await store.close()
            #expect(report.judgement.concerns.filter { $0.kind == "client_unproven" }.map(\.client) == ["client"])
        }
    }

    @Test(
        "spans are shown in their two largest units",
        arguments: [
            (Duration.zero, "0 s"), (.milliseconds(999), "0 s"), (.seconds(59), "59 s"), (.seconds(61), "1 min 1 s"),
            (.seconds(3600), "1 h"), (.seconds(12_000), "3 h 20 min"), (.seconds(90_000), "1 d 1 h"),
        ]
    )
    func spans(span: Duration, text: String) {
        #expect(span.inTwoUnits == text)
    }

    @Test(
        "sizes are shown in a unit that fits",
        arguments: [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB")]
            as [(Int64, String)]
    )
    func sizes(bytes: Int64, text: String) {
        #expect(ByteCount.text(bytes) == text)
    }
}

extension StatusReport {
    fileprivate mutating func expired(_ count: Int, for span: Duration) {
        statistics.expired.add(count, oldest: at - span, client: "c")
    }

    fileprivate mutating func due(for span: Duration, workers: [WorkerReport]) {
        statistics.due = 1
        statistics.oldestDueAt = at - span
        self.workers = workers
    }
}
