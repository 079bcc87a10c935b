/// Answers with tokens that a stopping worker could not store.
package struct UnstoredResults: Sendable, Hashable {
    /// How many are kept in the spill file.
    package var spilled: Int
    /// How many are kept nowhere: where the server rotates refresh tokens, these grants are lost.
    package var lost: Int

    package init(spilled: Int = 0, lost: Int = 0) {
        self.spilled = spilled
        self.lost = lost
    }
}

/// The end of an engine.
extension RefreshEngine {
    private static let timeToStoreWhatWasCancelled: Duration = .seconds(1)
    private static let timeToSpill: Duration = .seconds(2)

    /// The longest that ``stop(within:)`` takes beyond its deadline.
    package static let longestOverrun = timeToStoreWhatWasCancelled + timeToSpill

    /// Stops taking work, lets what is in flight finish until the deadline, and gives back the rest.
    ///
    /// Answers with tokens that the store has not taken by then go to the spill. Neither the store nor the spill is waited for
    /// longer.
    package func stop(within deadline: Duration) async -> UnstoredResults {
        isStopping = true
        wake()
        let patience = Task {
            do {
                try await Task.sleep(for: deadline)
                cancelFlights()
                try await Task.sleep(for: Self.timeToStoreWhatWasCancelled)
                // A slow disk must not hold up the stop.
                Task { await settler.giveUp() }
                try await Task.sleep(for: Self.timeToSpill)
                abandonFlights()
            } catch is CancellationError {
                // All flights landed in time.
            } catch {
                preconditionFailure("a sleep fails only when it is cancelled: \(error)")
            }
        }
        await drain()
        patience.cancel()
        hastening?.cancel()
        return await settler.unstored
    }

    private func drain() async {
        guard !flights.isEmpty else { return }
        await withCheckedContinuation { drained.append($0) }
    }

    private func cancelFlights() {
        for slot in flights.values { slot.cancel?() }
    }

    /// Ends flights whose claim, or whose return of a lease, waits for a store that does not answer.
    private func abandonFlights() {
        for id in flights.keys { land(id, as: .abandoned) }
    }
}
