/// The kinds of alarms, by their codes in the metrics log.
///
/// Each has a section in docs/runbook.md, which a test checks.
package enum AlarmKind: String, CaseIterable, Sendable {
    case clientFault = "client_fault"
    case clientUnproven = "client_unproven"
    case clientSecretsDiffer = "client_secrets_differ"
    case codesRefused = "codes_refused"
    case endpointFailing = "endpoint_failing"
    case endpointOutOfReach = "endpoint_out_of_reach"
    case grantsInDoubt = "grants_in_doubt"
    case grantRefused = "grant_refused"
    case unknownAnswer = "unknown_answer"
    case refreshLoop = "refresh_loop"
    case rotatedTokensDropped = "rotated_tokens_dropped"
    case unreadableToken = "unreadable_token"
    case sealingFailed = "sealing_failed"
    case spillFailed = "spill_failed"
    case storeFailing = "store_failing"
    case storeMoved = "store_moved"
    case storeReplaced = "store_replaced"
    case databaseFailedOver = "database_failed_over"
    case databaseReplaced = "database_replaced"
    case databaseCopySuspected = "database_copy_suspected"
    case databaseTablesLost = "database_tables_lost"
    case databaseRowsLost = "database_rows_lost"
    case keyFileUnreadable = "key_file_unreadable"
    case keyRingRefused = "key_ring_refused"
    case keyRingLacksKeys = "key_ring_lacks_keys"
    case certificateExpiring = "certificate_expiring"
    case certificateExpired = "certificate_expired"
    case certificateNotYetValid = "certificate_not_yet_valid"
    case projectInTesting = "project_in_testing"
}

/// What an alarm is about, which decides who sees its end.
package enum AlarmSubject: Sendable {
    /// The files, the memory or the client secret of the worker that raised it: the alarm ends with its worker.
    case worker
    /// The database, which each worker looks at: what a worker that has ended said counts only while no other one runs.
    case database
    /// The grants and what Google answers: the stored state shows the end.
    case grants
    /// What has happened and cannot be undone, so that a person should know.
    case past
}

extension AlarmKind {
    package var subject: AlarmSubject {
        switch self {
        case .clientSecretsDiffer, .codesRefused, .sealingFailed, .storeFailing, .storeMoved, .storeReplaced,
            .databaseCopySuspected, .keyFileUnreadable, .keyRingRefused, .keyRingLacksKeys, .certificateExpiring,
            .certificateExpired, .certificateNotYetValid, .endpointOutOfReach:
            .worker
        case .databaseTablesLost, .databaseRowsLost: .database
        case .clientFault, .clientUnproven, .endpointFailing, .grantsInDoubt, .grantRefused, .unknownAnswer,
            .projectInTesting, .refreshLoop, .unreadableToken:
            .grants
        case .rotatedTokensDropped, .spillFailed, .databaseFailedOver, .databaseReplaced: .past
        }
    }

    /// The age after which an alarm is over unless its cause is seen again.
    package var maximumAge: Duration {
        switch self {
        // A grant whose token cannot be opened is tried every ten minutes, and a slowed one is refreshed as often.
        case .unreadableToken, .refreshLoop: .seconds(900)
        default: .seconds(3600)
        }
    }
}
