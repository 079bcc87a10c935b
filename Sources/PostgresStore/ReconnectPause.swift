import Clocks

/// How long to wait before the next attempt to connect.
enum ReconnectPause {
    private static let first: Duration = .milliseconds(50)
    private static let longest: Duration = .seconds(5)
    /// So many doublings reach the longest pause.
    private static let mostDoublings = 7

    /// Twice as long after each failure, and spread, so that many workers do not come back at one moment.
    static func after(failures: Int, random: any RandomSource) -> Duration {
        min(first * (1 << min(failures, mostDoublings)), longest) * (0.5 + random.nextUnit() / 2)
    }
}
