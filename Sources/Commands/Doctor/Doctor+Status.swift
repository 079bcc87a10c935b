import Status
import Storage
import Worker

/// The concerns of the status, as warnings.
extension Doctor {
    /// The conditions that the doctor checks more closely itself, and the one that it is run in: before a start, no
    /// worker is running.
    private static let ownChecks: [Condition] = [
        .noWorker, .keyRingUnreadable, .keysMissing, .rotationUnfinished, .resultsSpilled, .diskNearlyFull,
        .sqliteLogResetBug, .databaseUnusable,
    ]

    /// Judges the stored state, as `status` does.
    ///
    /// Concerns are warnings, because the daemon starts in spite of them.
    func statusDiagnoses(of store: any AccountStore) async throws -> [Diagnosis] {
        let report = try await context.statusReport(from: store, includesSlowParts: false)
        return Self.check(report.judgement)
    }

    static func check(_ judgement: Judgement) -> [Diagnosis] {
        let subject = "status"
        let own = Set(ownChecks.map(\.rawValue))
        let concerns = judgement.concerns.filter { !$0.isAdvisory && !own.contains($0.kind) }
        guard !concerns.isEmpty else { return [.ok(subject, "no concern")] }
        return concerns.map { .warning(subject, "\($0.text) (\($0.runbook))") }
    }
}
