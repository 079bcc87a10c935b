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

/// The estimate of another clock, from readings that each took some time.
///
/// A reading is assumed to be from the middle of its round trip, so its error is at most half of that.
struct ClockEstimate {
    /// The largest drift between two clocks: quartz is accurate to well within 0.1 ms per second.
    private static let drift = 0.000_1
    /// The resolution of the clocks: whole milliseconds.
    private static let resolution: Duration = .milliseconds(1)

    private struct Reading {
        let time: Timestamp
        let middle: BootInstant
        let error: Duration

        func time(at instant: BootInstant) -> Timestamp { time + (instant - middle) }

        func error(at instant: BootInstant) -> Duration {
            error + (instant > middle ? instant - middle : .zero) * drift
        }
    }

    private var best: Reading?

    func time(at instant: BootInstant) -> Timestamp? { best?.time(at: instant) }

    /// Takes a reading if it is more exact than the current estimate, or shows that the clock was stepped.
    mutating func take(_ time: Timestamp, sentAt start: BootInstant, receivedAt end: BootInstant) {
        let error = (end - start) / 2
        let reading = Reading(time: time, middle: start + error, error: error + Self.resolution)
        guard let best else { return best = reading }
        let expected = best.time(at: reading.middle)
        let difference = time > expected ? time - expected : expected - time
        let bound = best.error(at: reading.middle)
        if reading.error <= bound || difference > bound + reading.error { self.best = reading }
    }
}
