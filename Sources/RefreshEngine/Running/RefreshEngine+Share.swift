import Scheduler
package import Store

/// The part of the work and of each client's pace that falls to this worker.
extension RefreshEngine {
    /// Takes the part of the work that the reports of all workers leave to this one, and the same part of each client's pace.
    package func takeShare(among reports: [WorkerReport]) {
        let share = Share(of: configuration.workerName, among: reports)
        guard share != self.share else { return }
        self.share = share
        sharePace()
        // What others had, and what is theirs now, shows in the index.
        storeChanged()
    }

    func sharePace() {
        for client in gates.keys {
            gates[client]?.pacer.changeMaxRate(configuration.maxRate)
            gates[client]?.pacer.sharers = share.count
        }
    }

    /// How many flights there may be now.
    var mostInFlight: Int { inFlightLimit.limit(at: configuration.maxRate / Double(share.count)) }
}
