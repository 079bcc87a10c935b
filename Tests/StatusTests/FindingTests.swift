import Crypto
import Foundation
import Telemetry
import TestSupport
import Testing

@testable import Base
@testable import Scheduler
@testable import Status
@testable import Storage

@Suite("Findings")
struct FindingTests {
    private static let now = ManualTime().now
    private static let key = KeyID.named("00000001")
    private static let otherKey = KeyID.named("00000002")
    private static let worker = WorkerReport(id: "12-ab", keyIDs: [key], sealingKeyID: key)

    private static func observed(_ change: (inout StatusSnapshot) -> Void = { _ in }) -> StatusSnapshot {
        var observed = StatusSnapshot(at: now)
        observed.grants.byState = [.active: 10]
        observed.workers = [worker]
        observed.ringKeys = [key]
        observed.sealingKey = key
        observed.clients = [ClientStatus(id: "c")]
        observed.notices = PendingNotices(count: 0, oldest: nil)
        observed.receivesSecurityEvents = true
        observed.lastSecurityEventAt = now - .seconds(86_400)
        observed.freeSpace = 1 << 40
        change(&observed)
        return observed
    }

    private static func expired(_ count: Int, for span: Duration, lastSuccess: Duration? = nil) -> StatusSnapshot {
        observed {
            $0.grants.expired.add(count, oldest: now - span, client: "c")
            $0.clients[0].lastSuccessAt = lastSuccess.map { now - $0 }
        }
    }

    private static let http503 = ClientFailure(
        code: "http_503",
        status: 503,
        since: now - .seconds(50),
        lastAt: now - .seconds(2),
        count: 20
    )

    /// The endpoint has answered 503 for 50 seconds, and the breaker is open.
    private static func outage(_ change: (inout StatusSnapshot) -> Void = { _ in }) -> StatusSnapshot {
        observed {
            $0.clients[0].breaker = .open("endpoint_failing")
            $0.clients[0].breakerSince = now - .seconds(40)
            $0.clients[0].nextProbe = .seconds(5)
            $0.clients[0].failures = [http503]
            change(&$0)
        }
    }

    private static func alarm(_ kind: AlarmKind, client: String = "") -> CurrentAlarm {
        CurrentAlarm(
            kind: kind,
            client: client,
            text: "text",
            since: now - .seconds(5),
            until: now + .seconds(3595),
            count: 2
        )
    }

    private static func transaction(age: Duration? = nil, count: Int = 7) -> OldestTransaction {
        OldestTransaction(holder: "session 4711 of postgres (psql, idle)", age: age, transactions: count)
    }

    private static var inTesting: [String: ConsentEnds] {
        var ends = ConsentEnds()
        ends.announced = 1
        return ["c": ends]
    }

    @Test("An old transaction is named, with its age")
    func oldTransaction() {
        let found = Self.observed { $0.oldestTransaction = Self.transaction(age: .seconds(7_800)) }.findings
        #expect(
            found.map(\.text) == [
                """
                dead rows stay in the database for 2 h 10 min because of 'session 4711 of postgres (psql, idle)': end it, \
                if nobody needs it
                """
            ]
        )
        #expect(found.map(\.since) == [Self.now - .seconds(7_800)])
    }

    @Test("There is none if all is well")
    func well() {
        #expect(Self.observed().findings == [])
    }

    @Test(
        "Each trouble is a finding of these kinds",
        arguments: [
            ("expired for a minute", expired(2, for: .seconds(60)), []),
            ("expired for longer", expired(2, for: .seconds(61)), ["grants_expired"]),
            ("a tenth expired for seconds", expired(3, for: .seconds(15)), []),
            ("more than a tenth, for longer", expired(3, for: .seconds(16)), ["grants_expired"]),
            (
                "expired a second ago, and nothing is sent for the client",
                outage { $0.grants.expired.add(1, oldest: now - .seconds(1), client: "c") },
                ["breaker_open", "grants_expired"]
            ),
            (
                "expired a second ago, and the endpoint answers 503 without an open breaker",
                observed {
                    $0.grants.expired.add(1, oldest: now - .seconds(1), client: "c")
                    $0.clients[0].failures = [http503]
                }, ["grants_expired"]
            ),
            (
                "the same, but others succeed since",
                observed {
                    $0.grants.expired.add(1, oldest: now - .seconds(1), client: "c")
                    $0.clients[0].failures = [http503]
                    $0.clients[0].lastSuccessAt = now
                }, []
            ),
            (
                "expired, and the client never succeeded", expired(2, for: .seconds(7201)),
                ["grants_expired", "client_without_success"]
            ),
            (
                "expired, and the last success is long ago", expired(2, for: .seconds(61), lastSuccess: .seconds(7201)),
                ["grants_expired", "client_without_success"]
            ),
            (
                "expired, but others succeed", expired(2, for: .seconds(7201), lastSuccess: .seconds(9)),
                ["grants_expired"]
            ),
            (
                "expired, before cron's next pass",
                observed {
                    $0.workers = []
                    $0.lastPassAt = now - .seconds(600)
                    $0.grants.expired.add(1, oldest: now - .seconds(600), client: "c")
                }, []
            ),
            ("two of twelve retry", observed { $0.grants.byState[.retrying] = 2 }, []),
            ("three of thirteen retry", observed { $0.grants.byState[.retrying] = 3 }, ["many_retrying"]),
            ("three of many retry", observed { $0.grants.byState = [.active: 27, .retrying: 3] }, []),
            ("breaker", observed { $0.clients[0].breaker = .open("invalid_client") }, ["breaker_open"]),
            ("wave", observed { $0.clients[0].isWave = true }, ["invalid_grant_wave"]),
            ("three in doubt", observed { $0.grants.inDoubt = ["c": 3] }, ["invalid_grant_wave"]),
            ("two in doubt", observed { $0.grants.inDoubt = ["c": 2] }, []),
            (
                "in doubt, with its alarm",
                observed {
                    $0.grants.inDoubt = ["c": 3]
                    $0.process.alarms = [alarm(.grantsInDoubt, client: "c")]
                }, ["invalid_grant_wave"]
            ),
            (
                "an alarm about a doubt that is over",
                observed { $0.process.alarms = [alarm(.grantsInDoubt, client: "c")] }, []
            ),
            ("pause", observed { $0.clients[0].pause = .seconds(3) }, ["client_paused"]),
            ("slowed", observed { $0.clients[0].isSlowed = true }, ["client_slowed"]),
            ("overdue", observed { $0.grants.oldestDueAt = now - .seconds(61) }, ["grants_overdue"]),
            (
                "no security event ever, which many apps do not use", observed { $0.lastSecurityEventAt = nil }, []
            ),
            ("no worker, and nothing is due", observed { $0.workers = [] }, ["no_worker"]),
            (
                "between two passes",
                observed {
                    $0.workers = []
                    $0.lastPassAt = now - .seconds(600)
                }, []
            ),
            (
                "no worker, and the last pass was long ago",
                observed {
                    $0.workers = []
                    $0.lastPassAt = now - .seconds(601)
                }, ["no_worker"]
            ),
            (
                "passes, and a grant is due for long",
                observed {
                    $0.workers = []
                    $0.lastPassAt = now
                    $0.grants.oldestDueAt = now - .seconds(601)
                }, ["no_worker"]
            ),
            (
                "another worker seals with a key that one lacks",
                observed {
                    $0.workers?.append(WorkerReport(id: "x", keyIDs: [key, otherKey], sealingKeyID: otherKey))
                },
                ["worker_lacks_key"]
            ),
            (
                "the ring's key, which the worker lacks, seals tokens",
                observed {
                    $0.ringKeys.append(otherKey)
                    $0.sealingKey = otherKey
                    $0.keysInUse = [key: 2, otherKey: 1]
                },
                ["worker_lacks_key"]
            ),
            ("the ring here has a key that seals nothing", observed { $0.sealingKey = otherKey }, []),
            ("ending", observed { $0.grants.refreshTokensEnding = 1 }, ["refresh_tokens_ending"]),
            ("idle", observed { $0.grants.idle = 1 }, ["grants_idle"]),
            ("no ring", observed { $0.isKeyRingUnreadable = true }, ["key_ring_unreadable"]),
            (
                "lost key", observed { $0.keysInUse = [otherKey: 4] },
                ["keys_missing"]
            ),
            (
                "rotation", observed { $0.pendingKey = otherKey },
                ["rotation_unfinished"]
            ),
            ("database", observed { $0.process.databaseProblem = "busy" }, ["database_unusable"]),
            ("results", observed { $0.process.resultsWaiting = .seconds(6) }, ["results_waiting"]),
            (
                "spilled",
                observed { $0.spilledFiles = [SpilledFile(path: "f", isSetAside: false, writtenAt: now, results: 1)] },
                ["results_spilled"]
            ),
            ("metrics log", observed { $0.process.isMetricsLogFailing = true }, ["metrics_log_failing"]),
            (
                "notices", observed { $0.notices = PendingNotices(count: 3, oldest: now - .seconds(3601)) },
                ["notices_stuck"]
            ),
            (
                "notices on their way", observed { $0.notices = PendingNotices(count: 3, oldest: now - .seconds(60)) },
                []
            ),
            (
                "silent", observed { $0.lastSecurityEventAt = now - .seconds(31 * 86_400) },
                ["security_events_silent"]
            ),
            ("disk", observed { $0.freeSpace = 1 << 20 }, ["disk_nearly_full"]),
            ("backup of last night", observed { $0.backups = backups(lastAt: now - .seconds(90_000)) }, []),
            ("old backup", observed { $0.backups = backups(lastAt: now - .seconds(180_000)) }, ["backup_overdue"]),
            ("no backup", observed { $0.backups = backups(lastAt: nil) }, ["backup_overdue"]),
            ("a transaction of a dump", observed { $0.oldestTransaction = transaction(age: .seconds(3_600)) }, []),
            (
                "old transaction", observed { $0.oldestTransaction = transaction(age: .seconds(3_601)) },
                ["old_transaction"]
            ),
            ("a standby's query", observed { $0.oldestTransaction = transaction(count: 1_000_000) }, []),
            ("forgotten slot", observed { $0.oldestTransaction = transaction(count: 1_000_001) }, ["old_transaction"]),
            (
                "rows that are gone", observed { $0.incidents = [.rowsLost("2 grants of 3")] },
                ["database_rows_lost"]
            ),
            (
                "rows that are gone, with the worker's alarm",
                observed {
                    $0.incidents = [.rowsLost("2 grants of 3")]
                    $0.process.alarms = [alarm(.databaseRowsLost)]
                }, ["database_rows_lost"]
            ),
            ("alarm", observed { $0.process.alarms = [alarm(.refreshLoop)] }, ["refresh_loop"]),
            (
                "an alarm that says the same",
                observed {
                    $0.clients[0].breaker = .open("invalid_client")
                    $0.process.alarms = [alarm(.clientFault, client: "c"), alarm(.clientFault, client: "d")]
                }, ["breaker_open", "client_fault"]
            ),
        ] as [(String, StatusSnapshot, [String])]
    )
    func findings(situation: String, observed: StatusSnapshot, kinds: [String]) {
        let findings = observed.findings
        #expect(findings.map(\.kind) == kinds, "\(situation)")
        let verdict = JSONValue.object(in: observed.json.bytes)?["verdict"]?.string
        #expect(verdict == findings.severity?.rawValue ?? "ok")
    }

    private static func backups(lastAt: Timestamp?) -> NightlyBackups {
        NightlyBackups(folder: "/copies", lastAt: lastAt, isOnSince: now - .seconds(200_000))
    }

    /// What a fleet shows minutes after Google revoked a share of its grants: those that were due are in doubt.
    private static func wave(of refused: Int, among grants: Int) -> StatusSnapshot {
        observed {
            $0.grants.byState = [.active: grants - refused, .retrying: refused]
            $0.grants.inDoubt = ["c": refused]
        }
    }

    /// A Cloud project in testing with 70 users.
    private static func ending(_ count: Int, withinDay near: Int) -> StatusSnapshot {
        observed {
            $0.grants.byState = [.active: 70]
            $0.grants.refreshTokensEnding = count
            $0.grants.refreshTokensEndingWithinDay = near
        }
    }

    @Test(
        "The verdict is the severity of the most urgent finding, which comes first",
        arguments: [
            ("all is well", observed(), nil),
            ("users are without tokens", expired(2, for: .seconds(61)), .now),
            (
                "no worker, and nobody is connected",
                observed {
                    $0.workers = []
                    $0.grants.byState = [:]
                }, .soon
            ),
            ("no worker: nobody gets a token", observed { $0.workers = [] }, .now),
            (
                "no pass for an hour, and all tokens are valid",
                observed {
                    $0.workers = []
                    $0.lastPassAt = now - .seconds(3600)
                }, .soon
            ),
            (
                "an outage, and tokens have expired",
                outage { $0.grants.expired.add(7, oldest: now - .seconds(1), client: "c") }, .now
            ),
            (
                "keys of another ring in the file, and no worker has the right one",
                observed {
                    $0.ringKeys = [otherKey]
                    $0.workers = []
                    $0.keysInUse = [key: 4]
                }, .now
            ),
            ("an outage", observed { $0.clients[0].breaker = .open("endpoint_failing") }, .soon),
            ("a slow pace", observed { $0.clients[0].isSlowed = true }, .tomorrow),
            (
                "all at once",
                observed {
                    $0.clients[0].isSlowed = true
                    $0.clients[0].breaker = .open("endpoint_failing")
                    $0.process.isMetricsLogFailing = true
                }, .now
            ),
            ("late by less than the margin", observed { $0.grants.oldestDueAt = now - .seconds(300) }, .tomorrow),
            ("late by more", observed { $0.grants.oldestDueAt = now - .seconds(301) }, .soon),
            ("3 % of 60 users", wave(of: 2, among: 60), nil),
            ("15 % of 60 users", wave(of: 9, among: 60), .soon),
            ("50 % of 60 users", wave(of: 30, among: 60), .soon),
            ("3 % of a million users", wave(of: 30_000, among: 1_000_000), .soon),
            ("15 % of a million users", wave(of: 150_000, among: 1_000_000), .soon),
            ("50 % of a million users", wave(of: 500_000, among: 1_000_000), .soon),
            ("a seventh ends each day, as in testing", ending(30, withinDay: 10), .tomorrow),
            ("more than a fifth ends within a day", ending(30, withinDay: 15), .soon),
            ("two users' tokens end", ending(2, withinDay: 2), .tomorrow),
            ("a project in testing", observed { $0.grants.consentEnds = inTesting }, .tomorrow),
            (
                "the same, with its alarm",
                observed {
                    $0.grants.consentEnds = inTesting
                    $0.process.alarms = [alarm(.projectInTesting, client: "c")]
                }, .tomorrow
            ),
            ("an alarm", observed { $0.process.alarms = [alarm(.unreadableToken)] }, .now),
        ] as [(String, StatusSnapshot, Severity?)]
    )
    func severity(situation: String, observed: StatusSnapshot, severity: Severity?) {
        let findings = observed.findings
        #expect(findings.severity == severity, "\(situation)")
        #expect(findings.map(\.severity) == findings.map(\.severity).sorted(), "\(situation)")
    }

    @Test("A cause comes before its effects, is as urgent as they are, and is named by them")
    func causes() throws {
        let findings = Self.outage {
            $0.grants.byState = [.active: 3, .retrying: 7]
            $0.grants.retryingReasons = [GrantReason(rawValue: "http_503"): 7]
            $0.grants.expired.add(7, oldest: Self.now - .seconds(1), client: "c")
            $0.process.isMetricsLogFailing = true
        }.findings
        #expect(findings.map(\.kind) == ["breaker_open", "grants_expired", "many_retrying", "metrics_log_failing"])
        #expect(findings.map(\.cause) == [nil, "breaker_open", "breaker_open", nil])
        #expect(findings.map(\.severity) == [.now, .now, .soon, .now])
        let answer = "HTTP 503 since 2027-01-15T07:59:10Z"
        #expect(findings[0].text == "nothing is sent for client 'c': \(answer), next try in 5 s")
        #expect(findings[1].text.hasSuffix("; the endpoint gives \(answer)"))
        #expect(findings[2].text.hasSuffix("wait for another try: 7 http_503"))
    }

    @Test("An endpoint that does not answer is not said to answer")
    func noAnswer() {
        let findings = Self.outage {
            $0.clients[0].failures = [
                ClientFailure(code: "timeout", status: nil, since: Self.now, lastAt: Self.now, count: 20)
            ]
        }.findings
        let text = "nothing is sent for client 'c': no answer (timeout) since 2027-01-15T08:00:00Z, next try in 5 s"
        #expect(findings.map(\.text) == [text])
    }

    @Test("A wrong key file is named before its effects, while a worker has the right keys in memory")
    func wrongRing() throws {
        let findings = Self.observed {
            $0.ringKeys = [Self.otherKey]
            $0.sealingKey = Self.otherKey
            $0.keysInUse = [Self.key: 20]
            $0.process.alarms = [Self.alarm(.keyRingRefused)]
        }.findings
        #expect(findings.map(\.kind) == ["key_ring_refused", "keys_missing"])
        #expect(findings.severity == .soon, "every user still gets tokens")
        #expect(findings[1].text.contains("do not restart it"))
        #expect(!findings.contains { $0.text.contains("give it") })
    }

    @Test("What was not counted in time is a concern, the effect of an old transaction, and says nothing of the grants")
    func timedOutCounts() {
        let found = Self.observed {
            $0.grants = .empty
            $0.timedOutCounts = [.grants]
            $0.oldestTransaction = Self.transaction(age: .seconds(7_800))
            $0.process.alarms = [
                Self.alarm(.grantRefused, client: "c"), Self.alarm(.unknownAnswer),
                Self.alarm(.projectInTesting, client: "c"),
            ]
        }.findings
        let alarms = ["grant_refused", "unknown_answer", "project_in_testing"]
        #expect(Set(found.map(\.kind)) == Set(["old_transaction", "counts_timed_out"] + alarms))
        #expect(found.first { $0.kind == "counts_timed_out" }?.cause == "old_transaction")
        #expect(found.severity == .soon)
        let withoutWorker = Self.observed {
            $0.grants = .empty
            $0.timedOutCounts = [.grants]
            $0.workers = []
        }.findings
        #expect(withoutWorker.first?.text.contains("grants due: not counted") == true)
        #expect(withoutWorker.severity == .now, "services might ask for tokens")
        #expect(Self.observed { $0.timedOutCounts = [.rows, .tokens] }.findings.severity == .tomorrow)
    }

    @Test("No concern sends the reader of the status to the status")
    func commands() {
        for kind in Finding.Kind.allCases {
            #expect(!Finding(kind, "text").command.hasPrefix("refresh-worker status"), "\(kind)")
        }
    }

    @Test("The start of a concern stays while only time passes")
    func stableStart() {
        let starts = [70, 65].map { late in
            Self.observed { $0.grants.oldestDueAt = Self.now - .seconds(late) }.findings.map(\.since)
        }
        #expect(starts[0] == starts[1])
    }

    @Test("A project in testing is one finding, also with its alarm")
    func projectInTesting() {
        let observed = Self.observed {
            $0.grants.consentEnds = Self.inTesting
            $0.process.alarms = [Self.alarm(.projectInTesting, client: "c")]
        }
        #expect(observed.findings.map(\.kind) == ["project_in_testing"])
    }

    @Test(
        "An alarm ends with the breaker or the last grant that it is about, also if the process that raised it has ended"
    )
    func endedAlarm() {
        let open = Self.observed {
            $0.process.alarms = [Self.alarm(.clientFault, client: "c"), Self.alarm(.endpointFailing, client: "other")]
            $0.clients[0].breaker = .open("invalid_client")
        }
        #expect(open.findings.map(\.kind) == ["breaker_open", "endpoint_failing"])
        let closed = Self.observed { $0.process.alarms = [Self.alarm(.clientFault, client: "c")] }
        #expect(closed.findings.isEmpty)
        let moved = Self.observed {
            $0.clientsInUse = ["c"]
            $0.process.alarms = ["c", "moved"].map { Self.alarm(.clientUnproven, client: $0) }
            $0.process.alarms.append(Self.alarm(.refreshLoop))
        }
        #expect(moved.findings.map(\.client) == ["c", nil])
        let proven = Self.observed {
            $0.clients[0].lastSuccessAt = Self.now
            $0.process.alarms = [.clientUnproven, .grantRefused, .unknownAnswer].map { Self.alarm($0, client: "c") }
        }
        #expect(proven.findings.isEmpty)
        let refused = Self.observed {
            $0.grants.byState[.retrying] = 1
            $0.grants.retryingReasons = [.clientMismatchUnconfirmed: 1]
            $0.process.alarms = [.clientUnproven, .grantRefused, .unknownAnswer].map { Self.alarm($0, client: "c") }
        }
        #expect(refused.findings.map(\.kind) == ["client_unproven", "grant_refused", "unknown_answer"])
        let published = Self.observed { $0.process.alarms = [Self.alarm(.projectInTesting, client: "c")] }
        #expect(published.findings == [] && published.hasEnded(published.process.alarms[0]))
    }

    @Test("Spill files that cannot be listed are a finding")
    func unlistedFiles() {
        let findings = Self.observed { $0.spilledFiles = nil }.findings
        #expect(findings.map(\.kind) == ["results_spilled"])
    }

    @Test("A finding is written with its kind, start, count, command and section of the runbook")
    func json() throws {
        let finding = try #require(Self.expired(5, for: .seconds(90)).findings.first)
        var line = JSONLine()
        finding.write(into: &line)
        let object = try #require(JSONValue.object(in: line.bytes))
        #expect(object["kind"]?.string == "grants_expired")
        #expect(object["since"]?.string == "2027-01-15T07:58:30.000Z")
        #expect(object["severity"]?.string == "now")
        #expect(object["count"]?.integer == 5)
        #expect(object["client_id"]?.string == "c" && object["cause"] == .null)
        #expect(object["command"]?.string == "refresh-worker grants list --expired --sort since")
        #expect(object["runbook"]?.string == "docs/runbook.md#grants_expired")
        var installed = JSONLine()
        finding.write(into: &installed, documents: DocumentFolder(path: "/usr/share/doc/refresh-worker"))
        let runbook = try #require(JSONValue.object(in: installed.bytes))["runbook"]?.string
        #expect(runbook == "/usr/share/doc/refresh-worker/runbook.md#grants_expired")
    }
}

extension KeyID {
    /// Makes a key id from a text that is one.
    static func named(_ text: String) -> KeyID {
        guard let id = KeyID(text) else { preconditionFailure("\(text) is not the id of a key") }
        return id
    }
}
