import Base
import Storage

/// The decision about a notice after a delivery: a pure function of the answer and the clock.
enum NoticeOutcome: Hashable, Sendable {
    case accepted
    case postponed(until: Timestamp)
    case givenUp

    /// The name in the metrics log.
    var name: String {
        switch self {
        case .accepted: "accepted"
        case .postponed: "postponed"
        case .givenUp: "given_up"
        }
    }

    /// The time after which a notice that was not accepted is given up.
    static let givenUpAfter: Duration = .seconds(24 * 60 * 60)

    private static let backOff = BackOff(first: .seconds(5), maximum: .seconds(15 * 60))

    /// Returns the outcome for the answer's status. `nil` means that an answer did not arrive.
    static func make(
        of notice: Notice,
        status: Int?,
        retryAfter: Duration?,
        at now: Timestamp,
        jitter: Double
    ) -> NoticeOutcome {
        if let status, (200...299).contains(status) { return .accepted }
        guard now - notice.pendingSince < givenUpAfter else { return .givenUp }
        let wait = backOff.delay(failures: notice.attempts + 1, remainingLife: nil, jitter: jitter)
        return .postponed(until: now + max(wait, retryAfter ?? .zero))
    }
}
