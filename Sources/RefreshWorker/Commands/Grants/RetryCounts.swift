import Base
import Storage

/// How many grants a retry made due, and how many it left as they are.
struct RetryCounts {
    private let counts: [GrantRetry: Int]

    init(_ counts: [GrantRetry: Int]) {
        self.counts = counts
    }

    func write(to line: inout JSONLine) {
        for outcome in GrantRetry.allCases { line.field(outcome.rawValue, counts[outcome] ?? 0) }
    }

    /// The text for people, which mentions grants that were left only if there are any.
    var sentence: String {
        let due = counts[.due] == 1 ? "1 grant is due now" : "\(counts[.due] ?? 0) grants are due now"
        let left = GrantRetry.allCases.compactMap { outcome -> String? in
            guard let count = counts[outcome], let reason = Self.reason(outcome) else { return nil }
            return "\(count) \(reason)"
        }
        return left.isEmpty ? due : "\(due); left as they are: \(left.joined(separator: ", "))"
    }

    private static func reason(_ outcome: GrantRetry) -> String? {
        switch outcome {
        case .due: nil
        case .inFlight: "being refreshed at this moment"
        case .awaitingConfirmation: "waiting for the confirmation of a refusal"
        case .accountDisabled: "with a disabled account (use --state suspended to try those)"
        case .noRefreshToken: "without a refresh token"
        case .ended: "ended"
        }
    }
}
