package import Base
import Telemetry

/// Something about an installation that a person should look at.
package struct Finding: Hashable, Sendable {
    /// The kinds of findings that follow from a snapshot.
    ///
    /// Alarms have kinds of their own.
    ///
    /// Each has a section in docs/runbook.md, which a test checks.
    package enum Kind: String, CaseIterable, Sendable {
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
        case diskNearlyFull = "disk_nearly_full"
        case deletionsWait = "deletions_wait"
        case backupOverdue = "backup_overdue"
        case oldTransaction = "old_transaction"
        case countsTimedOut = "counts_timed_out"

        /// `true` if `doctor` has a closer check of its own, or is run in this situation: before a start, no worker is
        /// running.
        var isCheckedByDoctor: Bool {
            switch self {
            case .noWorker, .keyRingUnreadable, .keysMissing, .rotationUnfinished, .resultsSpilled, .diskNearlyFull,
                .databaseUnusable:
                true
            default: false
            }
        }

        /// A command that shows more.
        var command: String {
            switch self {
            case .grantsExpired, .clientWithoutSuccess: "refresh-worker grants list --expired --sort since"
            case .manyRetrying: "refresh-worker grants list --state retrying"
            case .grantsOverdue, .grantsIdle: "refresh-worker grants list --sort due --limit 20"
            case .invalidGrantWave: "refresh-worker grants list --state retrying --sort since"
            case .clientPaused, .clientSlowed: "journalctl -u refresh-worker --since -1h"
            case .noWorker: "journalctl -u refresh-worker -n 50"
            case .workerLacksKey, .rotationUnfinished: "refresh-worker keys list"
            case .keysMissing: "refresh-worker grants list --unreadable"
            case .breakerOpen, .refreshTokensEnding, .keyRingUnreadable, .databaseUnusable, .resultsWaiting,
                .resultsSpilled, .metricsLogFailing,
                .diskNearlyFull, .oldTransaction, .countsTimedOut:
                "refresh-worker doctor"
            case .backupOverdue: "journalctl -u refresh-worker-backup --since -3d"
            case .noticesStuck: "journalctl -u refresh-worker --since -1h"
            case .securityEventsSilent: "refresh-worker google-events status --service-account-file FILE"
            case .deletionsWait: "refresh-worker store clock"
            }
        }

        /// The alarms that say the same, so that each problem is one finding.
        var covers: [AlarmKind] {
            switch self {
            case .breakerOpen: [.clientFault, .endpointFailing]
            case .databaseUnusable, .resultsWaiting: [.storeFailing]
            case .invalidGrantWave: [.grantsInDoubt]
            case .keysMissing: [.unreadableToken]
            case .keyRingUnreadable: [.keyFileUnreadable]
            default: []
            }
        }
    }

    /// The code of the kind: a ``Kind`` or an `AlarmKind`.
    ///
    /// It is also the section of docs/runbook.md.
    package var kind: String
    /// One sentence, whose wording can change.
    package var text: String
    /// The time since which it holds, if that is known.
    var since: Timestamp?
    /// The number of grants, keys, notices, files or answers that it is about.
    var count: Int
    /// The client id that it is about.
    var client: String?
    /// The command that has Google send a security event now.
    package static let requestSecurityEvent = "refresh-worker google-events verify --service-account-file FILE"

    /// A command that shows more.
    package var command: String
    package var severity: Severity
    /// The kind of the finding that this one follows from, and that comes before it.
    package internal(set) var cause: String?
    /// `true` if `doctor` leaves it to its own checks.
    package var isCheckedByDoctor = false

    init(
        _ kind: Kind,
        _ text: String,
        since: Timestamp? = nil,
        count: Int = 1,
        client: String? = nil,
        severity: Severity? = nil
    ) {
        self.kind = kind.rawValue
        self.text = text
        self.since = since
        self.count = count
        self.client = client
        command = kind.command
        self.severity = severity ?? kind.severity
        isCheckedByDoctor = kind.isCheckedByDoctor
    }

    init(_ alarm: CurrentAlarm) {
        kind = alarm.kind.rawValue
        text = alarm.text
        since = alarm.since
        count = alarm.count
        client = alarm.client.isEmpty ? nil : alarm.client
        command = "refresh-worker doctor"
        severity = alarm.kind.severity
        isCheckedByDoctor = [.projectInTesting, .storeMoved].contains(alarm.kind)
    }

    /// The section of the runbook.
    package var runbook: String { "docs/runbook.md#\(kind)" }

    /// Writes the finding for programs, with the paths of documents where they really are.
    func write(into line: inout JSONLine, documents: DocumentFolder = .current) {
        line.field("kind", kind)
        line.field("text", documents.located(text))
        line.field("severity", severity.rawValue)
        line.fieldOrNull("since", since?.iso8601)
        line.field("count", count)
        line.fieldOrNull("client_id", client)
        line.fieldOrNull("cause", cause)
        line.field("command", command)
        line.field("runbook", documents.located(runbook))
    }
}

extension [Finding] {
    /// Writes the verdict, as a word for programs, and the findings.
    package func write(into line: inout JSONLine) {
        line.field("verdict", severity?.rawValue ?? "ok")
        line.objects("concerns", self) { $0.write(into: &$1) }
    }
}

/// How soon a finding hurts users, the most urgent first.
///
/// The exit code of `status`, the verdict in JSON, the colours of the page and the label of the metric follow from it.
package enum Severity: String, CaseIterable, Comparable, Sendable {
    /// Users are without tokens.
    case now
    /// Users will soon be without tokens, or a token might be lost.
    case soon
    /// A person should look within a day.
    case tomorrow

    package static func < (left: Severity, right: Severity) -> Bool {
        (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
    }

    /// The verdict for people.
    package var verdict: String {
        switch self {
        case .now: "Users are without tokens now"
        case .soon: "Users will soon be without tokens"
        case .tomorrow: "Look tomorrow"
        }
    }
}

extension [Finding] {
    /// That of the most urgent finding, or `nil` if all is well.
    package var severity: Severity? { map(\.severity).min() }

    /// The verdict for people.
    package var verdict: String { severity?.verdict ?? "All is well" }
}

extension Finding.Kind {
    /// The usual severity.
    ///
    /// A finding that can be harmless has another one: see ``StatusSnapshot/findings``.
    var severity: Severity {
        switch self {
        case .grantsExpired, .clientWithoutSuccess, .keysMissing, .databaseUnusable, .metricsLogFailing: .now
        case .manyRetrying, .breakerOpen, .invalidGrantWave, .grantsOverdue, .noWorker, .workerLacksKey,
            .keyRingUnreadable, .resultsWaiting, .resultsSpilled, .diskNearlyFull, .countsTimedOut:
            .soon
        case .clientPaused, .clientSlowed, .refreshTokensEnding, .grantsIdle, .rotationUnfinished, .noticesStuck,
            .securityEventsSilent, .deletionsWait, .backupOverdue, .oldTransaction:
            .tomorrow
        }
    }
}

extension AlarmKind {
    var severity: Severity {
        switch self {
        case .codesRefused, .unreadableToken, .databaseTablesLost, .databaseRowsLost, .certificateExpired: .now
        case .clientFault, .clientUnproven, .clientSecretsDiffer, .endpointFailing, .grantsInDoubt,
            .rotatedTokensDropped, .sealingFailed, .spillFailed, .storeFailing, .storeMoved, .storeReplaced,
            .databaseReplaced, .databaseCopySuspected, .keyFileUnreadable, .keyRingRefused, .keyRingLacksKeys,
            .certificateNotYetValid:
            .soon
        case .endpointOutOfReach, .grantRefused, .unknownAnswer, .refreshLoop, .databaseFailedOver,
            .certificateExpiring, .projectInTesting:
            .tomorrow
        }
    }
}
