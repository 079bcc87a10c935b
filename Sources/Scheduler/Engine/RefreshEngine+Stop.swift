import Base

/// The stop of an engine.
extension RefreshEngine {
    private static let timeToStoreCancelled: Duration = .seconds(1)
    static let timeToSpill: Duration = .seconds(2)

    /// The longest time that ``stop(within:)`` takes beyond its deadline.
    package static let maximumOverrun = timeToStoreCancelled + timeToSpill

    /// Takes no more work, lets refreshes finish until the deadline, and releases the other leases.
    ///
    /// Answers with tokens that the store has not taken by then go to the spill file. The store and the spill file get
    /// no more time than that.
    package func stop(within deadline: Duration) async -> UnstoredResults {
        execute(state.beginStop())
        let deadlineTask = Task {
            do throws(CancellationError) {
                try await time.sleep(for: deadline)
                execute(state.cancelRequests())
                try await time.sleep(for: Self.timeToStoreCancelled)
                // A slow disk must not hold up the stop.
                Task { await committer.giveUp() }
                try await time.sleep(for: Self.timeToSpill)
                execute(state.abandonRefreshes())
            } catch {
                // All refreshes ended in time.
            }
        }
        await waitUntilNothingIsInFlight()
        deadlineTask.cancel()
        for task in outageRetries.values { task.cancel() }
        return await committer.unstored
    }

    /// Returns when no refresh is in flight.
    func waitUntilNothingIsInFlight() async {
        guard inFlight > 0 else { return }
        await withCheckedContinuation { idleWaiters.append($0) }
    }
}
