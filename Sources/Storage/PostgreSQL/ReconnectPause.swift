import Base

/// The wait before the next attempt to connect.
enum ReconnectPause {
    private static let first: Duration = .milliseconds(50)
    private static let longest: Duration = .seconds(5)
    /// The number of doublings that reach the longest pause.
    private static let mostDoublings = 7

    /// Returns a wait that doubles after each failure, with jitter, so that many workers do not come back at once.
    static func after(failures: Int, random: any RandomSource) -> Duration {
        min(first * (1 << min(failures, mostDoublings)), longest) * (0.5 + random.nextUnit() / 2)
    }
}
