import Telemetry

extension Finding {
    /// The kinds of findings that follow from a snapshot.
    ///
    /// Alarms have kinds of their own. Each has a section in docs/runbook.md, which a test checks.
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
}
