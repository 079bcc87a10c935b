package import Clocks
private import Scheduler
package import Store

/// What to do about a notice after it was posted: pure, from the answer and the clock.
package enum NoticeOutcome: Hashable, Sendable {
    case accepted
    case postponed(until: Timestamp)
    case givenUp

    /// As the metrics log calls it.
    package var name: String {
        switch self {
        case .accepted: "accepted"
        case .postponed: "postponed"
        case .givenUp: "given_up"
        }
    }

    /// How long a notice is tried before nobody is expected to take it.
    package static let patience: Duration = .seconds(24 * 60 * 60)

    private static let backOff = BackOff(first: .seconds(5), longest: .seconds(15 * 60))

    /// The outcome by the answer's status, `nil` when there was no answer.
    package static func make(
        of notice: Notice,
        status: Int?,
        retryAfter: Duration?,
        at now: Timestamp,
        unit: Double
    ) -> NoticeOutcome {
        if let status, (200...299).contains(status) { return .accepted }
        guard now - notice.pendingSince < patience else { return .givenUp }
        let wait = backOff.delay(failures: notice.attempts + 1, remainingLife: nil, unit: unit)
        return .postponed(until: now + max(wait, retryAfter ?? .zero))
    }
}
