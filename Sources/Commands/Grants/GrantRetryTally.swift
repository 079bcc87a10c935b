import Base
import Storage

/// The numbers of grants that `grants retry` made due, and of those that it left.
struct GrantRetryTally: Equatable, Sendable {
    private var counts: [GrantRetry.Outcome: Int] = [:]

    subscript(_ outcome: GrantRetry.Outcome) -> Int { counts[outcome] ?? 0 }

    mutating func count(_ outcome: GrantRetry.Outcome) { counts[outcome, default: 0] += 1 }

    mutating func add(_ other: Self) { counts.merge(other.counts, uniquingKeysWith: +) }

    var json: JSONLine {
        var line = JSONLine()
        for outcome in GrantRetry.Outcome.allCases { line.field(outcome.rawValue, self[outcome]) }
        return line
    }

    /// The text for people; grants that were left are named only if there are any.
    var sentence: String {
        let due = self[.due] == 1 ? "1 grant is due now" : "\(self[.due]) grants are due now"
        let left = GrantRetry.Outcome.allCases.compactMap { outcome -> String? in
            guard self[outcome] > 0, let reason = Self.reason(outcome) else { return nil }
            return "\(self[outcome]) \(reason)"
        }
        return left.isEmpty ? due : "\(due); left as they are: \(left.joined(separator: ", "))"
    }

    private static func reason(_ outcome: GrantRetry.Outcome) -> String? {
        switch outcome {
        case .due: nil
        case .inFlight: "being refreshed at this moment"
        case .awaitingConfirmation: "waiting for the confirmation of an invalid_grant"
        case .accountDisabled: "with a disabled account (use --state suspended to try those)"
        case .noRefreshToken: "without a refresh token"
        case .ended: "ended"
        }
    }
}
