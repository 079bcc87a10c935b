import TestSupport

@testable import Base
@testable import HTTPClient
@testable import RefreshWorker
@testable import Routes
@testable import Scheduler
@testable import Storage
@testable import Telemetry

/// One event of each kind with every field, and one with only those that are always there.
enum MetricsSamples {
    static let counts: IntervalCounts = counted(refreshes: [full.counted])
    static let noCounts: IntervalCounts = counted(refreshes: [])

    private static let work = ConnectionID("work") ?? .default

    static let full = RefreshEvent(
        grant: GrantID(rawValue: 0xab),
        connection: work,
        counted: CountedRefresh(outcome: .retrying, lateness: .milliseconds(1_200), latency: .milliseconds(80)),
        verdict: "server_error",
        reason: "server_error",
        attempt: 2,
        rotated: true,
        forced: true,
        lostScopes: ["https://mail.google.com/", "openid"],
        status: 503,
        answer: "Service\nUnavailable",
        standsFor: 100
    )

    static let short = RefreshEvent(
        grant: GrantID(rawValue: 0xab),
        counted: CountedRefresh(outcome: .lostLease, lateness: .milliseconds(-5), latency: nil),
        verdict: "",
        reason: "",
        attempt: 1
    )

    private static let grant = GrantID(rawValue: 0xab)
    private static let mailer = Routes.Service(
        name: "mailer",
        credentialHash: [],
        scopes: .everything,
        users: .everything
    )
    private static let trace = TraceContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    private static let scopes = ["https://mail.google.com/", "openid"].compactMap { ScopeName($0) }
    private static let pass = PassSummary(
        due: 28,
        refreshed: 1,
        retrying: 2,
        held: 3,
        suspended: 4,
        reauthRequired: 5,
        disconnected: 6,
        skipped: 7
    )

    static let all: [MetricsEvent] = [
        full.event, short.event,
        .vend(
            outcome: "served",
            of: mailer,
            audit: TokenVendingHandler.Audit(scopes: scopes, grant: grant, connection: work),
            forced: true,
            trace: trace
        ),
        .vend(outcome: "forbidden", of: mailer, audit: TokenVendingHandler.Audit(), forced: false, trace: nil),
        .lookup(outcome: "found", by: mailer, grant: grant), .lookup(outcome: "not_found", by: mailer, grant: nil),
        .manage(.disconnect, "allowed", mailer, grant, work),
        .manage(.list, "forbidden", mailer, nil, .default),
        disconnected(generation: 4),
        .breaker(client: "an-id", "opened", reason: "invalid_client"),
        .pacer(client: "an-id", ceiling: 12.5, paused: .seconds(3), reason: "throttled"),
        alarm(.clientFault, "The client is unknown to Google.", client: "an-id"),
        alarm(.storeFailing, "Nothing can be stored."),
        .securityEvent(
            AppliedSecurityEvent(kind: "tokens_revoked", outcome: .applied, grants: 1, sessions: 2),
            token: "00112233aabbccdd"
        ),
        summary(counts), summary(noCounts), .runOnce(pass, unstored: UnstoredResults(), duration: .seconds(8)),
        .started(mode: "daemon"), .stopping(reason: "SIGTERM", inFlight: 3), .stopped(uptime: .seconds(60)),
        .clockStep(.seconds(-3_600)),
        .delivery(
            of: notice(
                .connection(of: Notice.Subject(grant), from: .active, to: .disconnected, reason: .invalidGrant),
                trace: trace
            ),
            outcome: .accepted,
            status: 204
        ),
        .delivery(of: notice(.userDeleted), outcome: .postponed(until: Timestamp(milliseconds: 0)), status: nil),
    ]

    /// One sample of each event, in the order of the document.
    static let events = all.reduce(into: [MetricsEvent]()) { events, sample in
        if events.last?.name != sample.name { events.append(sample) }
    }

    static func disconnected(generation: Int64) -> MetricsEvent {
        .state(
            GrantEvent(
                grant: grant,
                at: Timestamp(milliseconds: 0),
                kind: .state,
                from: .active,
                to: .disconnected,
                reason: .invalidGrant,
                generation: generation
            )
        )
    }

    static func alarm(_ kind: AlarmKind, _ text: String, client: String = "") -> MetricsEvent {
        let now = Timestamp(milliseconds: 0)
        return .alarm(
            CurrentAlarm(kind: kind, client: client, text: text, since: now, until: now, count: 1),
            count: 1
        )
    }

    static func summary(_ counts: IntervalCounts, overdue: Int = 2) -> MetricsEvent {
        let now = ManualTime().now
        let oldest = now - .milliseconds(1_500 * overdue)
        let grants = GrantStatistics(
            byState: [.active: 5],
            due: overdue,
            oldestDueAt: oldest,
            refreshTokensEnding: 1,
            idle: 0
        )
        let http = HTTPClient.Counters()
        return .summary(
            of: counts,
            grants: grants,
            at: now,
            inFlight: 1,
            waiting: 10 - overdue,
            droppedLines: 3,
            http: http,
            since: http
        )
    }

    private static func notice(_ content: Notice.Content, trace: TraceContext? = nil) -> Notice {
        let now = Timestamp(milliseconds: 0)
        return Notice(
            key: Notice.Key(userID: "u", number: 1),
            id: NoticeID(high: 0, low: 0),
            at: now,
            trace: trace,
            content: content,
            pendingSince: now,
            attempts: 0
        )
    }

    private static func counted(refreshes: [CountedRefresh]) -> IntervalCounts {
        let time = ManualTime()
        let counters = EventCounters(time: time)
        counters.record(refreshes)
        time.advance(by: .seconds(10))
        return counters.drain()
    }
}

extension RefreshEvent {
    var event: MetricsEvent { MetricsEvent(Self.name) { write(into: &$0) } }
}

extension MetricsLog {
    func record(_ event: RefreshEvent) {
        record(RefreshEvent.name, count: 1) { event.write(into: &$1) }
    }
}
