/// The wait before a grant is tried again.
///
/// Full jitter: the wait is a random time between zero and the cap, so that grants which failed together do not come
/// back together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). Each policy names its own
/// caps. With those of ``RefreshRules``:
///
/// | failures in a row | cap    |
/// |------------------:|-------:|
/// |                 1 |   10 s |
/// |                 2 |   20 s |
/// |                 3 |   40 s |
/// |                 4 |   80 s |
/// |                 5 |  160 s |
/// |                 6 |  320 s |
/// |         7 or more | 10 min |
///
/// While the access token is live the cap is also a third of its remaining life, so that several attempts fit in before
/// a caller notices. A wait is at least a second.
///
///     let backOff = BackOff(first: .seconds(10), maximum: .seconds(600))
///     backOff.delay(failures: 3, remainingLife: nil, jitter: 0)               // 40 s, the cap
///     backOff.delay(failures: 3, remainingLife: .seconds(60), jitter: 0.5)    // 10 s, half of a third of the life
struct BackOff: Hashable, Sendable {
    /// The shortest wait, which also limits the attempts for a token that is about to expire.
    static let minimum: Duration = .seconds(1)

    /// The time for which unknown answers are retried with the normal back-off.
    static let slowRetriesAfter: Duration = .seconds(24 * 60 * 60)

    /// The interval between retries after that time: more attempts are useless until a person has removed the cause.
    static let slowRetryInterval: Duration = .seconds(60 * 60)

    /// The cap after the first failure.
    let first: Duration

    /// The cap at which the doubling ends.
    let maximum: Duration

    /// Returns the wait after a failure that might pass.
    ///
    /// - Parameters:
    ///   - failures: failures in a row, including the latest. Fewer than one counts as one.
    ///   - remainingLife: the remaining life of the access token. It is `nil` or not positive if that has expired.
    ///   - jitter: a random number from 0 up to but not including 1.
    /// - Returns: the wait, at least the shortest and at most the cap.
    func delay(failures: Int, remainingLife: Duration?, jitter: Double) -> Duration {
        let cap = Self.limit(cap(failures: failures), within: remainingLife)
        // 1 - jitter is in (0, 1]: the cap itself can be reached and zero cannot.
        return max(cap * (1 - jitter), Self.minimum)
    }

    /// Returns the wait after an unknown answer: the normal back-off for the first day, then an hour less a random part
    /// of its last sixth.
    ///
    /// - Parameters:
    ///   - failures: failures in a row, including the latest. Fewer than one counts as one.
    ///   - failingFor: the time since the first of them.
    ///   - remainingLife: the remaining life of the access token. It is `nil` or not positive if that has expired.
    ///   - jitter: a random number from 0 up to but not including 1.
    /// - Returns: the wait, at least the shortest and at most the cap.
    func delayForUnknown(failures: Int, failingFor: Duration, remainingLife: Duration?, jitter: Double) -> Duration {
        guard failingFor >= Self.slowRetriesAfter else {
            return delay(failures: failures, remainingLife: remainingLife, jitter: jitter)
        }
        let cap = Self.limit(Self.slowRetryInterval, within: remainingLife)
        return max(cap - cap / 6 * jitter, Self.minimum)
    }

    /// Returns the number of failures, including the next, that the doubling allows within a span.
    ///
    /// While the access token is live, attempts come faster than the doubling says. They must not count as so many
    /// failures, or a token that expires in a short outage would wait ten minutes after it.
    func failures(within span: Duration) -> Int {
        var failures = 1
        while failures < 31, first * (1 << (failures - 1)) <= span { failures += 1 }
        return failures
    }

    /// Returns the first cap, doubled for each further failure up to the longest.
    func cap(failures: Int) -> Duration {
        // Thirty doublings of a second are 34 years, beyond any cap, and cannot overflow.
        let doublings = min(max(failures, 1) - 1, 30)
        return min(first * (1 << doublings), maximum)
    }

    private static func limit(_ cap: Duration, within remainingLife: Duration?) -> Duration {
        guard let remainingLife, remainingLife > .zero else { return cap }
        return min(cap, max(remainingLife / 3, minimum))
    }
}
