import Scheduler
package import Store

/// This worker's share of the grants and of each client's pace.
extension RefreshEngine {
    /// Takes the share of the grants, and of each client's pace, that follows from the reports of all workers.
    package func takeShare(among reports: [WorkerReport]) {
        let share = WorkPartition(of: configuration.workerName, among: reports)
        guard share != self.share else { return }
        self.share = share
        sharePace()
        // The grants that now belong to this worker are found in the due index.
        storeChanged()
    }

    func sharePace() {
        for client in gates.keys {
            gates[client]?.pacer.changeMaxRate(configuration.maxRate)
            gates[client]?.pacer.sharers = share.count
        }
    }

    /// The number of flights that may be in flight now.
    var mostInFlight: Int { inFlightLimit.limit(at: configuration.maxRate / Double(share.count)) }
}
