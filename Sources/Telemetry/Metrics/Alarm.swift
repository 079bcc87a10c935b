package import Base

extension MetricsEvent {
    /// A condition that a person should look at, reported once and not for each grant.
    ///
    /// `count` are the grants or answers that caused it since it was last reported.
    package static func alarm(_ alarm: CurrentAlarm, count: Int) -> MetricsEvent {
        MetricsEvent("alarm") { line in
            line.text("kind", alarm.kind.rawValue, "its code")
            line.text("text", alarm.text, maximum: 512, "a sentence")
            line.number("count", count, "the grants or answers that caused it")
            line.text("client", ifAny: alarm.client.isEmpty ? nil : alarm.client, "the client id, if it is about one")
        }
    }
}

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

/// An alarm whose cause was seen lately, and has not ended as far as the worker knows.
package struct CurrentAlarm: Hashable, Sendable {
    package var kind: AlarmKind
    /// The client id that the alarm is about, or empty if it is about none.
    package var client: String
    /// The sentence of the last time.
    package var text: String
    /// The time at which the cause was first seen.
    package var since: Timestamp
    /// The time after which it no longer counts as current, unless its cause is seen again.
    package var until: Timestamp
    /// The number of times that it was seen since then.
    package var count: Int

    package init(kind: AlarmKind, client: String, text: String, since: Timestamp, until: Timestamp, count: Int) {
        self.kind = kind
        self.client = client
        self.text = text
        self.since = since
        self.until = until
        self.count = count
    }
}
