package import Base
import Telemetry

/// A condition that a person should look at.
package struct Concern: Hashable, Sendable {
    /// The code of the kind: a ``Condition`` or an `AlarmKind`.
    ///
    /// It is also the section of docs/runbook.md.
    package var kind: String
    /// One sentence; its wording may change.
    package var text: String
    /// The time since which it holds, if that is known.
    var since: Timestamp?
    /// The number of grants, keys, notices, files or answers that it is about.
    var count: Int
    /// The client id that it is about.
    var client: String?
    /// A command that shows more.
    package var command: String
    /// `true` if it does not change the verdict.
    package var isAdvisory: Bool

    init(
        _ condition: Condition,
        _ text: String,
        since: Timestamp? = nil,
        count: Int = 1,
        client: String? = nil
    ) {
        kind = condition.rawValue
        self.text = text
        self.since = since
        self.count = count
        self.client = client
        command = condition.command
        isAdvisory = condition.isAdvisory
    }

    init(_ alarm: CurrentAlarm) {
        kind = alarm.kind.rawValue
        text = alarm.text
        since = alarm.since
        count = alarm.count
        client = alarm.client.isEmpty ? nil : alarm.client
        command = "refresh-worker doctor"
        isAdvisory = false
    }

    /// The section of the runbook.
    package var runbook: String { "docs/runbook.md#\(kind)" }

    package func write(into line: inout JSONLine) {
        line.field("kind", kind)
        line.field("text", text)
        line.field("advisory", isAdvisory)
        line.fieldOrNull("since", since?.iso8601)
        line.field("count", count)
        line.fieldOrNull("client_id", client)
        line.field("command", command)
        line.field("runbook", runbook)
    }
}

/// The kinds of concerns that are judged from observations; alarms are kinds of their own.
///
/// Each has a section in docs/runbook.md, which a test checks.
package enum Condition: String, CaseIterable, Sendable {
    case grantsExpired = "grants_expired"
    case manyRetrying = "many_retrying"
    case clientWithoutSuccess = "client_without_success"
    case breakerOpen = "breaker_open"
    case invalidGrantWave = "invalid_grant_wave"
    case clientPaused = "client_paused"
    case clientSlowed = "client_slowed"
    case grantsOverdue = "grants_overdue"
    case noWorker = "no_worker"
    case workerLacksKey = "worker_lacks_key"
    case refreshTokensEnding = "refresh_tokens_ending"
    case grantsIdle = "grants_idle"
    case keyRingUnreadable = "key_ring_unreadable"
    case keysMissing = "keys_missing"
    case rotationUnfinished = "rotation_unfinished"
    case databaseUnusable = "database_unusable"
    case resultsWaiting = "results_waiting"
    case resultsSpilled = "results_spilled"
    case metricsLogFailing = "metrics_log_failing"
    case noticesStuck = "notices_stuck"
    case securityEventsSilent = "security_events_silent"
    case securityEventsUnverified = "security_events_unverified"
    case sqliteLogResetBug = "sqlite_log_reset_bug"
    case diskNearlyFull = "disk_nearly_full"

    /// `true` if the condition is shown and does not change the verdict.
    ///
    /// An advisory condition may hold for months without harm. If it changed the verdict, monitors would ignore the
    /// verdict.
    var isAdvisory: Bool {
        switch self {
        case .sqliteLogResetBug, .securityEventsUnverified: true
        default: false
        }
    }

    /// A command that shows more.
    var command: String {
        switch self {
        case .grantsExpired, .clientWithoutSuccess: "refresh-worker grants list --expired --sort since"
        case .manyRetrying: "refresh-worker grants list --state retrying"
        case .grantsOverdue: "refresh-worker grants list --sort due --limit 20"
        case .breakerOpen, .invalidGrantWave, .clientPaused, .clientSlowed, .noWorker, .refreshTokensEnding,
            .grantsIdle:
            "refresh-worker status --json"
        case .workerLacksKey, .rotationUnfinished: "refresh-worker keys list"
        case .keysMissing: "refresh-worker grants list --unreadable"
        case .keyRingUnreadable, .databaseUnusable, .resultsWaiting, .resultsSpilled, .metricsLogFailing,
            .sqliteLogResetBug,
            .diskNearlyFull:
            "refresh-worker doctor"
        case .noticesStuck: "journalctl -u refresh-worker --since -1h"
        case .securityEventsSilent, .securityEventsUnverified: "refresh-worker google-events status"
        }
    }

    /// The alarm kinds that say the same, so that each problem is one concern.
    var covers: [String] {
        switch self {
        case .breakerOpen: ["client_fault", "endpoint_failing"]
        case .databaseUnusable, .resultsWaiting: ["store_failing"]
        case .invalidGrantWave: ["grants_in_doubt"]
        case .keysMissing: ["unreadable_token"]
        case .keyRingUnreadable: ["key_file_unreadable"]
        default: []
        }
    }
}
