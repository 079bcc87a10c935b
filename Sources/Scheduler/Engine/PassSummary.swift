import Telemetry

/// The result of one pass over the due grants.
package struct PassSummary: Sendable, Hashable {
    package var due = 0
    package var refreshed = 0
    package var retrying = 0
    package var held = 0
    package var suspended = 0
    package var reauthRequired = 0
    package var disconnected = 0
    package var skipped = 0

    /// `true` if grants remain due for a later pass.
    package var leavesGrantsDue: Bool { retrying + held > 0 }

    mutating func count(_ completion: RefreshCompletion) {
        due += 1
        switch completion {
        // It is counted when it is sent.
        case .deferred: due -= 1
        case .handledElsewhere: skipped += 1
        case .abandoned, .refused: retrying += 1
        case .committed(_, let stored):
            switch stored.decision.outcome {
            case .refreshed: refreshed += 1
            case .held: held += 1
            case .suspended: suspended += 1
            case .reauthRequired: reauthRequired += 1
            case .disconnected: disconnected += 1
            case .retrying, .unchanged: retrying += 1
            // Another process has changed or claimed the grant since, and handles it.
            case .void, .lostLease: skipped += 1
            }
        }
    }
}
