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
            .proofRefused, .projectInTesting, .refreshLoop, .unreadableToken:
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
