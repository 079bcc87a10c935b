import Clocks

/// Decides whether systemd's watchdog may be fed: only a worker whose every loop turns is alive.
struct Watchdog: Sendable {
    /// What to do at a feeding time.
    enum Verdict: Equatable, Sendable {
        case feed
        /// Feed nothing; when it goes on, systemd kills and restarts the worker.
        case withhold(stalled: [LoopPulse.Loop])
    }

    /// A healthy loop comes round within this: the slowest turns every five seconds, and a slow disk may hold it up.
    private static let leastPatience: Duration = .seconds(20)
    /// Feeding more often would only cost time.
    private static let leastPeriod: Duration = .milliseconds(100)

    /// Within which systemd wants to be told; beyond it the process is killed.
    let interval: Duration
    private let pulse: LoopPulse
    private let time: any TimeSource

    init(interval: Duration, pulse: LoopPulse, time: any TimeSource) {
        self.interval = interval
        self.pulse = pulse
        self.time = time
    }

    /// How often to ask for the verdict: half the interval, as sd_watchdog_enabled(3) recommends.
    var feedingPeriod: Duration { max(interval / 2, Self.leastPeriod) }

    /// The verdict at this moment: a loop counts as turning when it came round within the interval, or within 20 s where
    /// the interval is shorter.
    func verdict() -> Verdict {
        let stalled = pulse.stalled(since: time.sinceBoot + (.zero - max(interval, Self.leastPatience)))
        return stalled.isEmpty ? .feed : .withhold(stalled: stalled)
    }
}
