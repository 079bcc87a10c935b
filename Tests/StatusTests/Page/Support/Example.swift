import Crypto
import Status

@testable import Base
@testable import Storage
@testable import Telemetry

/// Contents of the page for the tests.
enum Example {
    static let now = ManualTime().now
    static let client = "1234-demo.apps.googleusercontent.com"

    /// A worker without grants, concerns and changes.
    static func quiet() -> StatusPageContents {
        var contents = StatusPageContents(
            at: now,
            worker: "4711-0a1b2c3d",
            version: "1.2.3",
            startedAt: now - .seconds(7200),
            phase: "serving"
        )
        contents.judgement = Judgement(Observations(at: now))
        contents.grants = statistics([:])
        contents.activity = Array(repeating: RecentActivity.Minute(), count: RecentActivity.minuteCount)
        contents.workers = []
        return contents
    }

    /// Contents that have `text` wherever a text comes from a user, an operator, Google or a worker.
    static func everywhere(_ text: String, withUser: Bool = false) -> StatusPageContents {
        var contents = StatusPageContents(at: now, worker: text, version: text, startedAt: now, phase: text)
        contents.judgement = judgement(client: text, text: text)
        contents.grants = statistics([.active: 5, .retrying: 1])
        contents.activity = [RecentActivity.Minute(refreshed: 1, failed: 2, longestLateness: .seconds(3))]
        contents.clients = [
            StatusPageContents.Client(
                id: text,
                breaker: text,
                breakerReason: text,
                ceiling: 2.5,
                isSlowed: true,
                pause: .seconds(20),
                lastSuccessAt: now
            )
        ]
        contents.workers = [worker(text)]
        contents.changes = [change(text)]
        contents.notices = PendingNotices(count: 2, oldest: now)
        if withUser { contents.lookup = .found(grant(user: text, client: text), history: [event(0)]) }
        return contents
    }

    static func statistics(_ byState: [GrantState: Int], due: Int = 0, oldest: Timestamp? = nil) -> GrantStatistics {
        GrantStatistics(byState: byState, due: due, oldestDueAt: oldest, refreshTokensEnding: 0, idle: 0)
    }

    /// A judgement with a concern of each kind that a client or an alarm has, and an advisory one.
    static func judgement(client: String, text: String) -> Judgement {
        var observed = Observations(at: now)
        var failing = Observations.Client(id: client, name: text)
        failing.breakerReason = text
        failing.breakerSince = now - .seconds(90)
        failing.isWave = true
        failing.pause = .seconds(30)
        observed.clients = [failing]
        observed.faultySQLite = text
        observed.process.databaseProblem = text
        observed.process.alarms = AlarmKind.allCases.map { kind in
            CurrentAlarm(kind: kind, client: "", text: text, since: now, until: now + .seconds(60), count: 1)
        }
        return Judgement(observed)
    }

    static func worker(_ id: String, keys: Int = 1) -> WorkerReport {
        let ids = (0..<keys).compactMap { KeyID("0a1b2c" + ($0 < 10 ? "0" : "") + "\($0)") }
        return WorkerReport(id: id, keyIDs: ids, sealingKeyID: ids[0], isRefreshing: true)
    }

    static func change(_ text: String) -> RecentChanges.Change {
        RecentChanges.Change(at: now - .seconds(5), grant: text, from: text, to: text + " ", reason: text)
    }

    static func grant(user: String, client: String = client, state: GrantState = .retrying) -> Grant {
        Grant(
            id: GrantID(rawValue: 0x1234_5678_9abc_def0),
            userID: user,
            createdAt: now,
            clientID: client,
            owner: Grant.Owner(googleUserID: "sub", email: "owner@example.com", name: "The Owner"),
            scope: "openid",
            state: state,
            reason: GrantReason(rawValue: "endpoint_failing"),
            since: now - .seconds(200),
            generation: 3,
            refreshToken: nil,
            accessToken: nil,
            dueAt: now + .seconds(65),
            attempts: 4,
            failingSince: now - .seconds(300),
            lastSuccessAt: now - .seconds(4000),
            lastAttemptAt: now - .seconds(10),
            isProven: true,
            revocationAskedAt: nil,
            lease: nil
        )
    }

    /// An event of the grant; the larger the number, the older it is.
    static func event(_ number: Int) -> GrantEvent {
        GrantEvent(
            grant: GrantID(rawValue: 1),
            at: now - .seconds(number),
            kind: .scopeChanged,
            from: .retrying,
            to: .reauthRequired,
            reason: GrantReason(rawValue: "reason_\(number)"),
            generation: 3
        )
    }
}
