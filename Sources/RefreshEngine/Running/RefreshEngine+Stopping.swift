private import Clocks

/// Answers with tokens that a stopping worker could not store.
package struct UnstoredResults: Sendable, Hashable {
    /// The number of results in the spill file.
    package var spilled: Int
    /// The number of results that were kept nowhere: if the server rotates refresh tokens, these grants are lost.
    package var lost: Int

    package init(spilled: Int = 0, lost: Int = 0) {
        self.spilled = spilled
        self.lost = lost
    }
}

/// The stop of an engine.
extension RefreshEngine {
    private static let timeToStoreWhatWasCancelled: Duration = .seconds(1)
    private static let timeToSpill: Duration = .seconds(2)

    /// The longest time that ``stop(within:)`` takes beyond its deadline.
    package static let longestOverrun = timeToStoreWhatWasCancelled + timeToSpill

    /// Takes no more work, lets flights finish until the deadline, and gives back the other leases.
    ///
    /// Answers with tokens that the store has not taken by then go to the spill file. The store and the spill file get
    /// no more time than that.
    package func stop(within deadline: Duration) async -> UnstoredResults {
        isStopping = true
        wake()
        let patience = Task {
            do throws(CancellationError) {
                try await time.sleep(for: deadline)
                cancelFlights()
                try await time.sleep(for: Self.timeToStoreWhatWasCancelled)
                // A slow disk must not hold up the stop.
                Task { await committer.giveUp() }
                try await time.sleep(for: Self.timeToSpill)
                abandonFlights()
            } catch {
                // All flights ended in time.
            }
        }
        await drain()
        patience.cancel()
        hastening?.cancel()
        return await committer.unstored
    }

    /// Returns when no request is in flight.
    func drain() async {
        guard !flights.isEmpty else { return }
        await withCheckedContinuation { drained.append($0) }
    }

    private func cancelFlights() {
        for slot in flights.values { slot.cancel?() }
    }

    /// Ends flights whose claim, or whose return of a lease, waits for a store that does not respond.
    private func abandonFlights() {
        for id in flights.keys { land(id, as: .abandoned) }
    }
}
