package import Base
private import Synchronization

/// The database's clock, continued between readings by this machine's boot clock: the time that all workers share, even
/// if the clocks of their machines differ by hours.
package final class DatabaseClock: TimeSource {
    let local: any TimeSource
    private let estimate = Mutex(ClockEstimate())

    package init(local: any TimeSource) {
        self.local = local
    }

    /// The database's time; before the first reading, this machine's.
    package var now: Timestamp {
        let sinceBoot = local.sinceBoot
        return estimate.withLock { $0.time(at: sinceBoot) } ?? local.now
    }

    package var sinceBoot: BootInstant { local.sinceBoot }

    package func sleep(for span: Duration) async throws(CancellationError) {
        try await local.sleep(for: span)
    }

    /// Takes a reading of the database's clock from some time between the request and the response.
    func take(_ reading: Timestamp, sentAt start: BootInstant, receivedAt end: BootInstant) {
        estimate.withLock { $0.take(reading, sentAt: start, receivedAt: end) }
    }
}
