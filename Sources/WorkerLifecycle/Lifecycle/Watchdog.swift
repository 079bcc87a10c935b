import Clocks

/// Decides whether to feed systemd's watchdog: a worker is alive only while all of its loops run.
struct Watchdog: Sendable {
    /// The action at a feeding time.
    enum Verdict: Equatable, Sendable {
        case feed
        /// Do not feed; if this continues, systemd kills and restarts the worker.
        case withhold(stalled: [LoopHeartbeats.Loop])
    }

    /// A healthy loop turns within this time: the slowest turns every five seconds, and a slow disk may delay it.
    private static let leastPatience: Duration = .seconds(20)
    /// The shortest period: feeding more often would only cost time.
    private static let leastPeriod: Duration = .milliseconds(100)

    /// The interval within which systemd expects to be fed, before it kills the process.
    let interval: Duration
    private let pulse: LoopHeartbeats
    private let time: any TimeSource

    init(interval: Duration, pulse: LoopHeartbeats, time: any TimeSource) {
        self.interval = interval
        self.pulse = pulse
        self.time = time
    }

    /// The period of the verdicts: half the interval, as sd_watchdog_enabled(3) recommends.
    var feedingPeriod: Duration { max(interval / 2, Self.leastPeriod) }

    /// Returns the verdict at this moment.
    ///
    /// A loop counts as running if it turned within the interval, or within 20 s if the interval is shorter.
    func verdict() -> Verdict {
        let stalled = pulse.stalled(since: time.sinceBoot + (.zero - max(interval, Self.leastPatience)))
        return stalled.isEmpty ? .feed : .withhold(stalled: stalled)
    }
}
