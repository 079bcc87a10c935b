package import Telemetry

/// What only a running worker knows about itself.
package struct ProcessStatus: Sendable {
    /// `true` in a worker, which runs even while it cannot report that to the others.
    package var isWorker = false
    package var alarms: [CurrentAlarm] = []
    /// The code of the database's problem, or `nil` if results can be stored.
    package var databaseProblem: String?
    /// The time for which results could not be stored.
    package var resultsWaiting: Duration?
    /// `true` while lines of the metrics log cannot be written.
    package var isMetricsLogFailing = false
    package var droppedLines = 0

    package init() {}

    /// How long results can wait, or claims fail, before that counts as a problem.
    package static let tolerableDelay: Duration = .seconds(5)

    /// `true` if results can be stored, or have not waited long.
    package var isStoring: Bool {
        guard let resultsWaiting else { return true }
        return resultsWaiting <= Self.tolerableDelay
    }

    /// Adds the alarms that other processes raised, except those that this one has too.
    package mutating func add(_ others: [CurrentAlarm]) {
        alarms += others.filter { alarm in
            !alarms.contains { $0.kind == alarm.kind && $0.client == alarm.client }
        }
    }
}
