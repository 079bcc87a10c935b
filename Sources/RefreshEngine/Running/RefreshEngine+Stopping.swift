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

    /// Takes no more work, lets refreshes finish until the deadline, and releases the other leases.
    ///
    /// Answers with tokens that the store has not taken by then go to the spill file. The store and the spill file get
    /// no more time than that.
    package func stop(within deadline: Duration) async -> UnstoredResults {
        execute(state.beginStop())
        let patience = Task {
            do throws(CancellationError) {
                try await time.sleep(for: deadline)
                execute(state.cancelRequests())
                try await time.sleep(for: Self.timeToStoreWhatWasCancelled)
                // A slow disk must not hold up the stop.
                Task { await committer.giveUp() }
                try await time.sleep(for: Self.timeToSpill)
                execute(state.abandonRefreshes())
            } catch {
                // All refreshes ended in time.
            }
        }
        await waitUntilNothingIsInFlight()
        patience.cancel()
        hastening?.cancel()
        return await committer.unstored
    }

    /// Returns when no request is in flight.
    func waitUntilNothingIsInFlight() async {
        guard inFlight > 0 else { return }
        await withCheckedContinuation { idleWaiters.append($0) }
    }
}
