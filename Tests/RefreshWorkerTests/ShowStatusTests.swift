import Crypto
import Foundation
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker
@testable import Scheduler
@testable import Status
@testable import Storage

@Suite("Status")
struct ShowStatusTests {
    private static let key = KeyID.named("00000001")
    private static let worker = WorkerReport(id: "12-ab", keyIDs: [key], sealingKeyID: key)
    private static let now = ManualTime().now
    private static let boot = BootInstant(milliseconds: 50_000)

    /// A snapshot without findings.
    private static var quiet: StatusSnapshot {
        var snapshot = StatusSnapshot(at: now)
        snapshot.grants.byState = [.active: 3]
        snapshot.clients = [client(ClientHealth(epoch: "e"))]
        snapshot.workers = [worker]
        snapshot.keysInUse = [key: 6]
        snapshot.ringKeys = [key]
        snapshot.sealingKey = key
        snapshot.database = "/d"
        snapshot.databaseBytes = 4096
        snapshot.schema = 1
        return snapshot
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

    private static func client(_ health: ClientHealth) -> ClientStatus {
        ClientStatus(
            id: "c",
            stored: health.stored,
            maxRate: 200,
            at: LeaseTime(epoch: "e", instant: boot),
            wallClock: now
        )
    }

    private static func changed(_ change: (inout StatusSnapshot) -> Void) -> StatusSnapshot {
        var snapshot = quiet
        change(&snapshot)
        return snapshot
    }

    @Test("there are no findings if all is well")
    func well() {
        #expect(Self.quiet.findings == [])
        #expect(Self.quiet.text.contains("verdict    All is well"))
    }

    @Test(
        "each problem is a finding of its own",
        arguments: [
            ("no worker", changed { $0.due(for: .seconds(601), workers: []) }, "no worker is running"),
            ("late", changed { $0.due(for: .seconds(61), workers: [worker]) }, "waited 1 min 1 s"),
            (
                "breaker", changed { $0.clients = [client(failing)] },
                "nothing is sent for client 'c': invalid_client"
            ),
            ("wave", changed { $0.clients = [client(wave)] }, "a wave of refusals for client 'c'"),
            ("pause", changed { $0.clients = [client(paused)] }, "pause for 20 s"),
            ("throttled", changed { $0.clients = [client(throttled)] }, "throttled client 'c'"),
            (
                "expired", changed { $0.expired(5, for: .seconds(61)) },
                "without a valid access token: 5, the oldest for 1 min"
            ),
            ("retrying", changed { $0.grants.byState[.retrying] = 3 }, "3 of 6 connected grants (50 %)"),
            ("ending", changed { $0.grants.refreshTokensEnding = 2 }, "end within three days: 2"),
            ("idle", changed { $0.grants.idle = 4 }, "at six: 4"),
            ("waits", changed { $0.spilledFiles = [spilled] }, "run: refresh-worker results recover /d.unsaved-1-a"),
            (
                "set aside", changed { $0.spilledFiles = [setAside] },
                "2 results in /d.set-aside-1-a could not all be stored, 1 h 1 min ago"
            ),
            ("no ring", changed { $0.isKeyRingUnreadable = true }, "key ring cannot be read"),
            ("lost key", changed { $0.keysInUse[KeyID.named("0000000f")] = 2 }, "2 tokens of key 0000000f"),
            (
                "unfinished rotation",
                changed { $0.pendingKey = KeyID.named("00000002") },
                "rotation to key 00000002"
            ),
        ] as [(String, StatusSnapshot, String)]
    )
    func finding(situation: String, snapshot: StatusSnapshot, text: String) {
        let findings = snapshot.findings
        #expect(findings.count == 1, "\(situation)")
        #expect(findings.first?.text.contains(text) == true, "\(situation): \(findings)")
        let severity = findings[0].severity
        #expect(snapshot.text.contains("verdict    \(severity.verdict):\n  - \(severity.urgency): "))
    }

    @Test("a short lateness is not a finding, with a worker or before cron's next pass")
    func tolerance() {
        #expect(Self.changed { $0.due(for: .seconds(60), workers: [Self.worker]) }.findings.isEmpty)
        let betweenPasses = Self.changed {
            $0.due(for: .seconds(600), workers: [])
            $0.lastPassAt = Self.now - .seconds(120)
        }
        #expect(betweenPasses.findings.isEmpty)
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

    /// An outage that answers 503 and lets other requests time out.
    private static var outage: ClientHealth {
        var health = failing
        for second in 0..<10 {
            health.failures.record("http_503", status: 503, at: now - .seconds(90 - second))
            if second > 5 { health.failures.record("timeout", status: nil, at: now - .seconds(90 - second)) }
        }
        return health
    }

    @Test("what Google answers is shown for each client: code, since when, how many, and when the next probe is")
    func answers() throws {
        let snapshot = Self.changed {
            $0.clients = [Self.client(Self.outage)]
            $0.grants.byState[.retrying] = 15
            $0.grants.retryingReasons = [
                GrantReason(rawValue: "timeout"): 4, GrantReason(rawValue: "http_503"): 10,
                GrantReason(rawValue: "http_500"): 1,
            ]
        }
        for line in [
            "retrying   10 http_503, 4 timeout, 1 http_500",
            "clients    'c': breaker open (invalid_client), next probe in 4 s, at most 200.0 requests a second",
            "             timeout: 4 since 2027-01-15T07:58:36Z, the last 1 min 21 s ago",
            "             HTTP 503: 10 since 2027-01-15T07:58:30Z, the last 1 min 21 s ago",
        ] {
            #expect(snapshot.text.contains(line + "\n"), "\(line)")
        }
        let object = try #require(JSONValue.object(in: snapshot.json.bytes))
        #expect(object["retrying_reasons"]?["http_503"]?.integer == 10)
        let failures = try #require(object["clients"]?.array?.first?["failures"]?.array)
        #expect(failures.map { $0["code"]?.string } == ["timeout", "http_503"])
        #expect(failures[0]["status"] == .null && failures[1]["status"]?.integer == 503)
        #expect(failures[1]["count"]?.integer == 10)
        #expect(failures[1]["since"]?.string == "2027-01-15T07:58:30.000Z")
        #expect(failures[1]["last_at"]?.string == "2027-01-15T07:58:39.000Z")
        let later = ClientStatus(
            id: "c",
            stored: Self.outage.stored,
            maxRate: 200,
            at: LeaseTime(epoch: "e", instant: Self.boot),
            wallClock: Self.now + .seconds(86_400)
        )
        #expect(later.failures.isEmpty, "yesterday's failures are not shown")
        #expect(Self.quiet.text.contains("retrying  ") == false)
    }

    private static var wave: ClientHealth {
        var health = ClientHealth(epoch: "e")
        for _ in 0..<30 { health.recordAnswer(isRefusal: true, at: now) }
        return health
    }

    private static var paused: ClientHealth {
        ClientHealth(epoch: "e", limits: Pacer.Limits(pausedUntil: boot + .seconds(20)))
    }

    private static var throttled: ClientHealth {
        ClientHealth(epoch: "e", limits: Pacer.Limits(cut: Pacer.Cut(ceiling: 10, at: boot)))
    }

    @Test("the JSON is one object with the snapshot's fields")
    func json() throws {
        let snapshot = Self.changed {
            $0.clients = [Self.client(Self.failing)]
            $0.due(for: .seconds(90), workers: [Self.worker])
            $0.spilledFiles = [Self.setAside]
        }
        let object = try #require(JSONValue.object(in: snapshot.json.bytes))
        #expect(object["verdict"]?.string == "soon")
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
        #expect(snapshot.text.contains("spilled    /d.set-aside-1-a, SET ASIDE, results: 2"))
        #expect(object["database"]?["schema"]?.integer == 1)
    }

    @Test("docs/status.md lists exactly the existing fields")
    func document() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let document = folder.appending(path: "../../docs/status.md").standardized
        let text = try String(contentsOf: document, encoding: .utf8)
        let listed = text.split(separator: "\n").filter { $0.hasPrefix("| `") }
            .compactMap { $0.split(separator: "`").dropFirst().first.map(String.init) }
        let full = Self.changed {
            $0.spilledFiles = [Self.spilled]
            $0.clients = [Self.client(Self.outage)]
        }
        let object = try #require(JSONValue.object(in: full.json.bytes))
        let nested = [
            object["concerns"]?.array?.first, object["clients"]?.array?.first, object["workers"]?.array?.first,
            object["keys"]?.array?.first, object["clients"]?.array?.first?["failures"]?.array?.first,
            object["spill_files"]?.array?.first, object["database"],
        ]
        let tables = [try #require(object.object)] + nested.compactMap { $0?.object }
        #expect(tables.count == 8)
        #expect(listed.sorted() == tables.flatMap(\.keys).sorted())
    }

    @Test("--watch shows all facts at first, and none while only time passes")
    func firstChanges() {
        let names = Self.quiet.changes(since: nil).map { $0.split(separator: " ")[1] }
        #expect(names == ["grants:", "client", "workers:", "verdict:"])
        let later = Self.changed {
            $0.at = Self.now + .seconds(60)
            $0.grants.due = 1
        }
        #expect(later.changes(since: Self.quiet).isEmpty)
    }

    @Test("--watch redraws over the former text without erasing the screen first")
    func redrawn() {
        #expect("a\nb\n".redrawn == "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J")
    }

    @Test("--watch shows one line for each change")
    func changes() {
        let next = Self.changed {
            $0.grants.byState = [.active: 2, .retrying: 1]
            $0.clients = []
            $0.workers = []
        }
        let changes = next.changes(since: Self.quiet)
        #expect(
            next.lines(of: changes, asJSON: false) == [
                "2027-01-15T08:00:00Z  grants: 2 active, 1 retrying", "2027-01-15T08:00:00Z  workers: none running",
                "2027-01-15T08:00:00Z  verdict: Users are without tokens now: no_worker",
                "2027-01-15T08:00:00Z  client 'c': gone",
            ]
        )
        #expect(next.lines(of: changes, asJSON: true) == [next.json.text])
        #expect(next.lines(of: [], asJSON: true).isEmpty)
    }

    @Test("a database is described while another process has it open")
    func database() async throws {
        try await OperatorFixture.with { fixture in
            let key = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try fixture.openStore()
            try await fixture.insert(1...3, sealedBy: try fixture.openVault(), into: store)
            _ = try await store.report(WorkerReport(id: "daemon", keyIDs: [key], sealingKeyID: key))
            let snapshot = try await StatusSnapshot.read(in: fixture.context([(.clientID, "configured")]))
            await store.close()
            #expect(snapshot.grants.grants == 3)
            #expect(snapshot.clients.map(\.id) == ["configured"])
            #expect(snapshot.workers?.map(\.id) == ["daemon"])
            #expect(snapshot.keysInUse == [key: 6])
            #expect(snapshot.ringKeys == [key] && snapshot.sealingKey == key)
            #expect(snapshot.schema == 2)
            #expect(snapshot.databaseBytes > 0)
        }
    }

    @Test("counts that time out are shown as such in text and JSON, with everything else, and doctor goes on")
    func timedOutCounts() async throws {
        try await OperatorFixture.with { fixture in
            let key = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try TestStore(time: fixture.time)
            try await fixture.insert(1...3, sealedBy: try fixture.openVault(), into: store.database)
            _ = try await store.report(WorkerReport(id: "daemon", keyIDs: [key], sealingKeyID: key))
            store.timeOutCounts()
            let context = try fixture.context([(.clientID, "configured")])
            let snapshot = try await context.status(from: store).snapshot()
            #expect(snapshot.workers?.map(\.id) == ["daemon"])
            #expect(snapshot.findings.map(\.kind) == ["counts_timed_out"])
            #expect(ExitCode(snapshot.findings.severity) == .soonWithoutTokens)
            #expect(snapshot.text.contains("grants     not counted in time\n"))
            #expect(snapshot.text.contains("due        not counted in time\n"))
            #expect(snapshot.text.contains("\(key) needed by tokens that were not counted in time\n"))
            let json = try #require(JSONValue.object(in: snapshot.json.bytes)?.object)
            #expect(json["due"] == .null && json["grants"]?.object?["total"] == .null)
            let checks = await Doctor(context: context).recordChecks(of: store)
            #expect(checks.allSatisfy { $0.severity != .fault })
            #expect(checks.map(\.name).contains("rows"))
            for check in checks where ["keys in use", "rows"].contains(check.name) {
                #expect(check.severity == .warning && check.advice?.contains("counts_timed_out") == true)
            }
            #expect(checks.contains { $0.finding.contains("counts_timed_out") })
            await store.close()
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
            let context = try fixture.context([(.clientID, "client"), (.clientID, "other")])
            let snapshot = try await context.status(from: store).snapshot()
            await store.close()
            #expect(snapshot.findings.filter { $0.kind == "client_unproven" }.map(\.client) == ["client"])
        }
    }

    @Test("an alarm about the key file ends with its worker, whose successor has read the file")
    func alarmOfRestartedWorker() async throws {
        try await OperatorFixture.with { fixture in
            let key = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try fixture.openStore()
            try await fixture.insert(1...1, sealedBy: try fixture.openVault(), into: store)
            let now = fixture.time.now
            let alarms = [AlarmKind.keyFileUnreadable, .keyRingRefused].map { kind in
                CurrentAlarm(
                    kind: kind,
                    client: "",
                    text: "text",
                    since: now,
                    until: now + .seconds(3600),
                    count: 1
                )
            }
            try await PublishedAlarms.publish(alarms, of: "first", in: store, at: now)
            _ = try await store.report(WorkerReport(id: "first", keyIDs: [key], sealingKeyID: key))
            let before = try await fixture.context().status(from: store).snapshot()
            #expect(Set(before.findings.map(\.kind)).isSuperset(of: ["key_file_unreadable", "key_ring_refused"]))
            try await store.removeWorker("first")
            _ = try await store.report(WorkerReport(id: "second", keyIDs: [key], sealingKeyID: key))
            let after = try await fixture.context().status(from: store).snapshot()
            await store.close()
            #expect(after.findings.filter { $0.kind.hasPrefix("key_") }.isEmpty)
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
        #expect(bytes.inBytes == text)
    }
}

extension StatusSnapshot {
    fileprivate mutating func expired(_ count: Int, for span: Duration) {
        grants.expired.add(count, oldest: at - span, client: "c")
    }

    fileprivate mutating func due(for span: Duration, workers: [WorkerReport]) {
        grants.due = 1
        grants.oldestDueAt = at - span
        self.workers = workers
    }
}
