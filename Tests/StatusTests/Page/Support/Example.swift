import Crypto
import Status
import TestSupport

@testable import Base
@testable import Scheduler
@testable import Storage
@testable import Telemetry

/// Contents of the page for the tests.
enum Example {
    static let now = ManualTime().now
    static let clientID = "1234-demo.apps.googleusercontent.com"
    /// As long as an id can be.
    private static let connection = ConnectionID(String(repeating: "c", count: 32)) ?? .default

    /// A worker without grants, findings and changes.
    static func quiet() -> StatusPage {
        var page = StatusPage(
            at: now,
            worker: "4711-0a1b2c3d",
            version: "1.2.3",
            startedAt: now - .seconds(7200),
            phase: "serving"
        )
        page.findings = []
        page.snapshot = StatusSnapshot(at: now)
        page.snapshot?.workers = []
        return page
    }

    /// Refreshes by the places of their slots: a chart ends with 59 or 23.
    static func activity(
        _ slots: [(RecentActivity.Scale, place: Int, refreshed: Int, failed: Int, lateness: Int)]
    ) -> RecentActivity {
        let lines = slots.map { scale, place, refreshed, failed, lateness in
            let number = now.milliseconds / scale.length.wholeMilliseconds - Int64(scale.count - 1 - place)
            return "\(scale.rawValue) \(number) \(refreshed) \(failed) \(lateness)"
        }
        return RecentActivity(lines.joined(separator: "\n"))
    }

    /// A page that has `text` wherever a text comes from a user, an operator, Google or a worker.
    static func everywhere(_ text: String, withUser: Bool = false) -> StatusPage {
        var page = StatusPage(at: now, worker: text, version: text, startedAt: now, phase: text)
        page.findings = findings(client: text, text: text)
        page.snapshot = StatusSnapshot(at: now)
        page.snapshot?.grants = statistics([.active: 5, .retrying: 1])
        page.snapshot?.workers = [worker(text)]
        page.snapshot?.notices = PendingNotices(count: 2, oldest: now)
        page.activity = activity([(.minute, 59, 1, 2, 3000)])
        page.services = [text: LifetimeCounts.Vends()]
        page.clients = [client(text, .open(text), ceiling: 2.5)]
        page.clients[0].isSlowed = true
        page.clients[0].pause = .seconds(20)
        page.clients[0].lastSuccessAt = now
        page.clients[0].failures = [ClientFailure(code: text, status: 503, since: now, lastAt: now, count: 7)]
        page.changes = [
            change(
                1,
                at: now - .seconds(5),
                from: .active,
                to: .retrying,
                reason: GrantReason(rawValue: text)
            )
        ]
        if withUser {
            // As short as a sealed text is.
            let sealed = String(text.prefix(128))
            let buttons: [StatusPage.Change: String] = [.retry: sealed, .disconnect: sealed]
            page.lookup = .found(grant(user: text, client: text), history: [event(0)], buttons: buttons)
        }
        return page
    }

    /// A page with a list of grants, with `text` as for ``everywhere(_:withUser:)``.
    static func list(_ text: String, count: Int = 2, all: Int? = nil) -> StatusPage {
        var page = everywhere(text)
        page.lookup = .list(
            Array(repeating: grant(user: text, connection: connection, client: text), count: count),
            filter: GrantFilter(
                state: .retrying,
                reason: .invalidGrant,
                clientID: text,
                isExpired: true,
                label: GrantFilter.Label("tenant=\(text)")
            ),
            next: text,
            count: all
        )
        return page
    }

    static func client(_ id: String, _ breaker: Breaker.State? = nil, ceiling: Double) -> ClientStatus {
        var client = ClientStatus(id: id)
        client.breaker = breaker ?? client.breaker
        client.ceiling = ceiling
        return client
    }

    static func statistics(_ byState: [GrantState: Int], due: Int = 0, oldest: Timestamp? = nil) -> GrantStatistics {
        GrantStatistics(byState: byState, due: due, oldestDueAt: oldest, refreshTokensEnding: 0, idle: 0)
    }

    /// Findings of each kind that a client or an alarm has.
    static func findings(client: String, text: String) -> [Finding] {
        var snapshot = StatusSnapshot(at: now)
        var failing = ClientStatus(id: client)
        failing.breaker = .open(text)
        failing.breakerSince = now - .seconds(90)
        failing.isWave = true
        failing.pause = .seconds(30)
        snapshot.clients = [failing]
        snapshot.process.databaseProblem = text
        snapshot.process.alarms = AlarmKind.allCases.map { kind in
            CurrentAlarm(kind: kind, client: "", text: text, since: now, until: now + .seconds(60), count: 1)
        }
        return snapshot.findings
    }

    static func worker(_ id: String, keys: Int = 1) -> WorkerReport {
        let ids = (0..<keys).compactMap { KeyID("0a1b2c" + ($0 < 10 ? "0" : "") + "\($0)") }
        return WorkerReport(id: id, keyIDs: ids, sealingKeyID: ids[0], isRefreshing: true)
    }

    static func change(
        _ grant: Int64,
        at: Timestamp,
        from: GrantState,
        to: GrantState,
        reason: GrantReason
    ) -> GrantEvent {
        GrantEvent(
            grant: GrantID(rawValue: grant),
            at: at,
            kind: .state,
            from: from,
            to: to,
            reason: reason,
            generation: 1
        )
    }

    static func grant(
        user: String,
        connection: ConnectionID = .default,
        client: String = clientID,
        state: GrantState = .retrying,
        accessToken: Grant.AccessToken? = nil
    ) -> Grant {
        Grant(
            id: GrantID(rawValue: 0x1234_5678_9abc_def0),
            userID: user,
            connection: connection,
            createdAt: now,
            clientID: client,
            owner: Grant.Owner(googleUserID: "sub", email: "owner@example.com", name: "The Owner"),
            scope: "openid",
            state: state,
            reason: GrantReason(rawValue: "endpoint_failing"),
            since: now - .seconds(200),
            generation: 3,
            refreshToken: nil,
            accessToken: accessToken,
            dueAt: now + .seconds(65),
            failures: 4,
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

extension Breaker.State {
    /// The state after a refusal of the client with this code.
    static func open(_ code: String) -> Breaker.State {
        let now = BootInstant(milliseconds: 0)
        return .open(reason: .clientFault(code), since: now, nextProbe: now, probes: 0)
    }
}
