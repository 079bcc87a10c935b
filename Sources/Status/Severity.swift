import Telemetry

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
            .keyRingUnreadable, .resultsWaiting, .resultsSpilled, .diskNearlyFull:
            .soon
        case .clientPaused, .clientSlowed, .refreshTokensEnding, .grantsIdle, .rotationUnfinished, .noticesStuck,
            .securityEventsSilent:
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
        case .grantRefused, .unknownAnswer, .refreshLoop, .databaseFailedOver, .certificateExpiring, .projectInTesting:
            .tomorrow
        }
    }
}
