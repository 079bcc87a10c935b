import Base
import Scheduler
import Status
import Storage

/// What `/readyz` tells a caller with a credential.
struct ReadinessReport {
    let isReady: Bool
    let at: Timestamp
    let phase: ServingPhase
    let process: ProcessStatus
    let keyRingProblem: String?
    /// The time since results could last be stored, or `nil` if they never could.
    let sinceLastSuccess: Duration?
    let clients: [ClientStatus]
    /// Grants in memory that are not due yet.
    let waiting: Int
    /// `nil` before the first snapshot.
    let snapshot: StatusSnapshot?
    /// `nil` if it is unknown if all is well.
    let findings: [Finding]?

    func write(into line: inout JSONLine) {
        line.field("ready", isReady)
        line.field("at", at.iso8601)
        line.fieldOrNull("observed_at", snapshot?.at.iso8601)
        writeVerdict(into: &line)
        line.object("checks", writeChecks)
        line.object("database", writeDatabase)
        line.objects("clients", clients) { status, client in
            client.field("client_id", status.id)
            client.field("breaker", status.breaker.name)
            client.field("ceiling_per_s", status.ceiling)
        }
        line.object("backlog", writeBacklog)
    }

    private func writeVerdict(into line: inout JSONLine) {
        if let findings {
            findings.write(into: &line)
        } else {
            line.field("verdict", "unknown")
            line.strings("concerns", [])
        }
    }

    private func writeChecks(into checks: inout JSONLine) {
        checks.field("phase", phase.rawValue)
        checks.field("database", process.databaseProblem ?? "ok")
        checks.field("results", process.isStoring ? "ok" : "waiting")
        checks.field("key_ring", keyRingProblem ?? "ok")
    }

    private func writeDatabase(into database: inout JSONLine) {
        if let sinceLastSuccess { database.field("last_success_seconds", sinceLastSuccess.inSeconds) }
        if let waiting = process.resultsWaiting { database.field("results_waiting_seconds", waiting.inSeconds) }
    }

    private func writeBacklog(into backlog: inout JSONLine) {
        backlog.field("waiting", waiting)
        guard let grants = snapshot?.countedGrants else { return }
        backlog.field("overdue", grants.due)
        backlog.field("oldest_overdue_seconds", (grants.lateness(at: at) ?? .zero).inSeconds)
    }
}
