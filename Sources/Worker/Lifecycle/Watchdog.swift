import Base

/// Decides whether to feed systemd's watchdog: a worker is alive only while all of its loops run.
struct Watchdog: Sendable {
    /// The action at the end of a period.
    enum Decision: Equatable, Sendable {
        case feed
        /// Do not feed; if this continues, systemd kills and restarts the worker.
        case doNotFeed(stalled: [LoopHeartbeats.Loop])
    }

    /// A healthy loop completes an iteration within this time: the slowest runs every five seconds, and a slow disk may
    /// delay it.
    private static let shortestTimeout: Duration = .seconds(20)
    /// The shortest period: feeding more often would only cost time.
    private static let shortestPeriod: Duration = .milliseconds(100)

    /// The interval within which systemd expects to be fed, before it kills the process.
    let interval: Duration
    private let heartbeats: LoopHeartbeats
    private let time: any TimeSource

    init(interval: Duration, heartbeats: LoopHeartbeats, time: any TimeSource) {
        self.interval = interval
        self.heartbeats = heartbeats
        self.time = time
    }

    /// The period of the decisions: half the interval, as sd_watchdog_enabled(3) recommends.
    var feedingPeriod: Duration { max(interval / 2, Self.shortestPeriod) }

    /// Returns the decision at this moment.
    ///
    /// A loop counts as running if it completed an iteration within the interval, or within 20 s if the interval is
    /// shorter.
    func decide() -> Decision {
        let stalled = heartbeats.stalled(since: time.sinceBoot + (.zero - max(interval, Self.shortestTimeout)))
        return stalled.isEmpty ? .feed : .doNotFeed(stalled: stalled)
    }
}
