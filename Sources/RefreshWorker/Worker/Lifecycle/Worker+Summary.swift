import Base
import HTTPClient
import Scheduler
import Storage
import Telemetry

/// The summaries of the metrics log, and what follows from the same counts.
extension Worker {
    /// Raises an alarm for each client id whose Cloud project is in testing, and ends those that were published.
    private func warnOfTesting(_ statistics: GrantStatistics) {
        let projects = statistics.projectsInTesting
        for project in projects { log.raise(.projectInTesting, project.text, client: project.client) }
        for alarm in log.currentAlarms where alarm.kind == .projectInTesting {
            if !projects.contains(where: { $0.client == alarm.client }) {
                log.end([.projectInTesting], client: alarm.client)
            }
        }
    }

    func summarise() async {
        var previous = http.counters
        await context.time.repeat(every: context.configuration.summaryInterval, immediately: false) {
            let current = http.counters
            let now = context.time.now
            await context.diagnostics.attempt("summary") {
                let statistics = try await store.grantStatistics(at: now)
                metrics.record(
                    .summary(
                        of: counters.drain(),
                        grants: statistics,
                        at: now,
                        inFlight: await engine.inFlight,
                        waiting: await engine.waiting,
                        droppedLines: metrics.droppedLines,
                        http: current,
                        since: previous
                    )
                )
                notify(.status(statistics.sentence(at: now)))
                warnOfTesting(statistics)
            }
            previous = current
        }
    }
}

extension GrantStatistics {
    /// Returns one line for `systemctl status`.
    fileprivate func sentence(at now: Timestamp) -> String {
        let connected = (byState[.active] ?? 0) + (byState[.retrying] ?? 0)
        let overdue = oldestDueAt.map { ", the oldest for \(Int((now - $0).inSeconds)) s" } ?? ""
        return "\(connected) of \(grants) grants connected, \(due) due\(overdue)"
    }
}
