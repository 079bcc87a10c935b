import Telemetry

/// Which findings follow from others: an operator reads a cause first, and below it what ends with it.
extension Finding {
    /// The kinds of findings that can be the cause of this one, the most likely first.
    private var possibleCauses: [String] {
        if let kind = Kind(rawValue: kind) { return kind.causes.map(\.rawValue) + kind.causingAlarms.map(\.rawValue) }
        return AlarmKind(rawValue: kind)?.causes.map(\.rawValue) ?? []
    }

    fileprivate func cause(in findings: [Finding]) -> Finding? {
        for kind in possibleCauses {
            if let found = findings.first(where: { $0.kind == kind && concernsClient(of: $0) }) { return found }
        }
        return nil
    }

    /// Returns `true` if both findings are about the same client, or one of them is about all.
    private func concernsClient(of other: Finding) -> Bool {
        guard let client, let otherClient = other.client else { return true }
        return client == otherClient
    }
}

extension [Finding] {
    /// Returns the most urgent ones first, and each effect after its cause, which is as urgent as the effect.
    func groupedByCause() -> [Finding] {
        var effects: [Finding: [Finding]] = [:]
        for finding in self {
            guard let root = root(of: finding) else { continue }
            var effect = finding
            effect.cause = root.kind
            effects[root, default: []].append(effect)
        }
        let groups = filter { root(of: $0) == nil }.map { cause in
            let effects = (effects[cause] ?? []).sorted { $0.severity < $1.severity }
            var urgent = cause
            urgent.severity = ([cause] + effects).map(\.severity).min() ?? cause.severity
            return [urgent] + effects
        }
        return Severity.allCases.flatMap { severity in groups.filter { $0[0].severity == severity }.joined() }
    }

    /// Returns the cause of a finding that follows from no other one, or `nil` if the finding itself is such.
    private func root(of finding: Finding) -> Finding? {
        guard var root = finding.cause(in: self) else { return nil }
        while let next = root.cause(in: self) { root = next }
        return root
    }
}

/// The causes. They must form no circle.
extension Finding.Kind {
    fileprivate var causes: [Finding.Kind] {
        switch self {
        case .grantsExpired, .clientWithoutSuccess: [.databaseUnusable, .noWorker, .breakerOpen, .clientPaused]
        case .grantsOverdue, .manyRetrying: [.databaseUnusable, .breakerOpen, .clientPaused, .invalidGrantWave]
        case .resultsWaiting: [.databaseUnusable]
        case .countsTimedOut: [.oldTransaction]
        default: []
        }
    }

    fileprivate var causingAlarms: [AlarmKind] {
        switch self {
        case .grantsExpired, .grantsOverdue: [.keyRingLacksKeys, .databaseCopySuspected]
        case .keysMissing, .workerLacksKey: [.keyRingRefused]
        default: []
        }
    }
}

extension AlarmKind {
    fileprivate var causes: [AlarmKind] {
        switch self {
        case .unreadableToken, .keyRingLacksKeys: [.keyRingRefused]
        default: []
        }
    }
}
