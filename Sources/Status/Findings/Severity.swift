/// How soon a finding hurts users, the most urgent first.
///
/// The exit code of `status`, the verdict in JSON, the colours of the page and the label of the metric follow from it.
package enum Severity: String, CaseIterable, Comparable, Sendable {
    /// Users are without tokens.
    case now
    /// Users will soon be without tokens, or a token might be lost.
    case soon
    /// A person should look within a day.
    case tomorrow

    package static func < (left: Severity, right: Severity) -> Bool {
        (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
    }

    /// The verdict for people.
    package var verdict: String {
        switch self {
        case .now: "Users are without tokens now"
        case .soon: "Users will soon be without tokens"
        case .tomorrow: "Look within a day"
        }
    }

    /// The severity for people: what it is about happens now, although looking at it can wait.
    package var urgency: String {
        switch self {
        case .now: "now"
        case .soon: "soon"
        case .tomorrow: "can wait"
        }
    }
}
