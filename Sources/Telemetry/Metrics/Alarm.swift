package import Base

extension MetricsEvent {
    /// A condition that a person should look at, reported once and not for each grant.
    package static func alarm(kind: String, text: String, count: Int, client: String? = nil) -> MetricsEvent {
        MetricsEvent("alarm") { line in
            line.text("kind", kind, "the code of the alarm")
            line.text("text", text, maximum: 512, "a sentence for a person, at most 512 bytes")
            line.number("count", count, "the number of grants or answers that caused it")
            line.text("client", ifAny: client, "the client id; only if the alarm is about one")
        }
    }
}

/// The kinds of alarms, by their codes in the metrics log.
package enum AlarmKind: String, CaseIterable, Sendable {
    case clientFault = "client_fault"
    case clientUnproven = "client_unproven"
    case clientSecretsDiffer = "client_secrets_differ"
    case endpointFailing = "endpoint_failing"
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

    /// The text of docs/metrics-log.md, which a test compares with this.
    var meaning: String {
        switch self {
        case .clientFault: "Google refuses the client id itself; no grant is changed, and one at a time is tried"
        case .clientUnproven:
            "Google refuses the first grants of a client id: is it right? `refresh-worker grants set-client` "
                + "moves them to another"
        case .clientSecretsDiffer:
            "Google refuses a worker whose client secret is not the one of the client id's last successful refresh"
        case .endpointFailing: "the token endpoint does not answer as it should; one grant at a time is tried"
        case .grantsInDoubt:
            "Google answers `invalid_grant` for more grants than usual; each is confirmed before it ends"
        case .grantRefused:
            "a grant that used to work is refused as if it belonged to another client id, while others "
                + "work"
        case .unknownAnswer: "the token endpoint answers in a way that is not known"
        case .refreshLoop: "a grant is refreshed again and again long before its token ends, and is slowed down"
        case .rotatedTokensDropped:
            "rotated refresh tokens came too late to be stored: look for a second database in use, or for "
                + "workers that stand still"
        case .unreadableToken: "the key ring does not open a stored token"
        case .sealingFailed: "answers cannot be sealed; they wait in memory"
        case .spillFailed:
            "answers that the database does not take cannot be written to the spill file either "
                + "(docs/operate.md#spill-files)"
        case .storeFailing: "the database cannot be used; results wait in memory"
        case .storeMoved: "the database was copied elsewhere and is not used any more; the worker stops"
        case .storeReplaced:
            "something else changed or deleted the files of the database while they were in use; the worker "
                + "stops"
        case .databaseFailedOver:
            "a standby of PostgreSQL was promoted: with asynchronous replication the last commits are lost "
                + "(docs/postgres.md)"
        case .databaseReplaced: "the database is in another PostgreSQL cluster than at its last use"
        case .databaseCopySuspected:
            "Google has refused all grants that a worker tried since its start: it may use a copy of a database "
                + "in use; one grant in five minutes is tried"
        case .databaseTablesLost: "the tables that a running worker used are gone"
        case .databaseRowsLost: "something else removed or added grants in the database"
        case .keyFileUnreadable:
            "the key file is missing or cannot be read; the keys in memory stay in use, but a restart would "
                + "fail (docs/operate.md#keys)"
        case .keyRingRefused:
            "the key file holds a key ring that does not fit the stored tokens; the keys in memory stay in "
                + "use (docs/operate.md#keys)"
        case .keyRingLacksKeys:
            "the key ring lacks a key that is needed; this worker refreshes nothing (docs/operate.md#keys)"
        case .certificateExpiring: "the internal listener's certificate must be renewed soon (docs/services.md)"
        case .certificateExpired: "the internal listener's certificate has expired, and services refuse it"
        case .certificateNotYetValid: "the internal listener's certificate is not valid yet: is the clock right?"
        }
    }
}

/// An alarm whose cause was seen in the last hour, and has not ended as far as the worker knows.
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
