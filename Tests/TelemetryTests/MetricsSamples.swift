@testable import Base
@testable import Telemetry

/// One event of each kind with every field, and one with only those that are always there.
enum MetricsSamples {
    static let counts: IntervalCounts = counted(refreshes: [full])
    static let noCounts: IntervalCounts = counted(refreshes: [])

    static let full = RefreshEvent(
        grant: "00000000000000ab",
        outcome: .retrying,
        verdict: "server_error",
        reason: "server_error",
        attempt: 2,
        lateness: .milliseconds(1_200),
        rotated: true,
        forced: true,
        lostScopes: ["https://mail.google.com/", "openid"],
        latency: .milliseconds(80),
        status: 503,
        answer: "Service\nUnavailable"
    )

    static let all: [MetricsEvent] = [
        full.event,
        RefreshEvent(
            grant: "00000000000000ab",
            outcome: .lostLease,
            verdict: "",
            reason: "",
            attempt: 1,
            lateness: .milliseconds(-5)
        ).event,
        .vend(
            service: "mailer",
            outcome: "served",
            scopes: "https://mail.google.com/ openid",
            forced: true,
            grant: "00000000000000ab"
        ),
        .vend(service: "mailer", outcome: "forbidden", scopes: "", forced: false, grant: nil),
        .lookup(service: "jane", outcome: "found", grant: "00000000000000ab"),
        .lookup(service: "jane", outcome: "not_found", grant: nil),
        .state(
            grant: "00000000000000ab",
            from: "active",
            to: "disconnected",
            reason: "invalid_grant",
            generation: 4
        ),
        .breaker(client: "an-id", "opened", reason: "invalid_client"),
        .pacer(client: "an-id", ceiling: 12.5, paused: .seconds(3), reason: "throttled"),
        .alarm(kind: "client_error", text: "The client is unknown to Google.", count: 7, client: "an-id"),
        .alarm(kind: "disk_full", text: "Nothing can be stored.", count: 1),
        .securityEvent(
            token: "00112233aabbccdd",
            kind: "tokens_revoked",
            outcome: .applied,
            grants: 1,
            sessions: 2
        ),
        summary(counts, (active: 5, retrying: 4, suspended: 3, reauthRequired: 2, disconnected: 1)),
        summary(noCounts, nil),
        .runOnce(
            due: 28,
            refreshed: 1,
            retrying: 2,
            held: 3,
            suspended: 4,
            reauthRequired: 5,
            disconnected: 6,
            skipped: 7,
            spilled: 0,
            lost: 0,
            duration: .seconds(8)
        ),
        .started(version: "1.0", mode: "daemon"),
        .stopping(reason: "SIGTERM", inFlight: 3),
        .stopped(uptime: .seconds(60)),
        .clockStep(.seconds(-3_600)),
        .notice(
            "ntc_00000000_1",
            type: "grant.disconnected",
            grant: "0000000000000001",
            outcome: "accepted",
            attempt: 1,
            status: 204
        ),
        .notice(
            "ntc_00000000_2",
            type: "user.deleted",
            grant: nil,
            outcome: "postponed",
            attempt: 1,
            status: nil
        ),
    ]

    static func summary(_ counts: IntervalCounts, _ grants: GrantCounts?, overdue: Int = 2) -> MetricsEvent {
        .summary(
            counts,
            inFlight: 1,
            due: 10,
            overdue: overdue,
            oldestOverdue: .milliseconds(1_500 * overdue),
            expiring: 1,
            droppedLines: 3,
            newConnections: 2,
            reusedConnections: 40,
            grants: grants
        )
    }

    static func counted(refreshes: [RefreshEvent]) -> IntervalCounts {
        let time = ManualTime()
        let counters = IntervalCounters(time: time)
        counters.record(refreshes)
        time.advance(by: .seconds(10))
        return counters.drain()
    }
}
