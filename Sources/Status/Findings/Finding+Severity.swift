import Telemetry

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
            .proofRefused, .rotatedTokensDropped, .sealingFailed, .spillFailed, .storeFailing, .storeMoved,
            .storeReplaced,
            .databaseReplaced, .databaseCopySuspected, .keyFileUnreadable, .keyRingRefused, .keyRingLacksKeys,
            .certificateNotYetValid:
            .soon
        case .endpointOutOfReach, .grantRefused, .unknownAnswer, .refreshLoop, .databaseFailedOver,
            .certificateExpiring, .projectInTesting:
            .tomorrow
        }
    }
}
