/// The last answers about one client's proven grants, which distinguish a wave of `invalid_grant` from users who left.
///
/// If something breaks at Google, or in a configuration, many grants answer `invalid_grant` at once although their
/// users never revoked anything. Only proven grants count, so an import of dead tokens does not look like a wave.
package struct RecentAnswers: Hashable, Sendable {
    /// The number of answers that are kept.
    package static let kept = 200
    /// The smallest number of `invalid_grant` answers in a wave.
    package static let fewestInWave = 20
    /// A wave has more than one `invalid_grant` in this many answers.
    package static let answersPerInvalid = 5

    /// `true` for each answer of `invalid_grant`, the oldest first.
    package private(set) var answers: [Bool]

    package init(answers: [Bool] = []) {
        self.answers = Array(answers.suffix(Self.kept))
    }

    package mutating func append(isInvalidGrant: Bool) {
        if answers.count >= Self.kept { answers.removeFirst(answers.count - Self.kept + 1) }
        answers.append(isInvalidGrant)
    }

    /// Adds answers that were not `invalid_grant`.
    package mutating func append(successes count: Int) {
        let added = [Bool](repeating: false, count: min(max(0, count), Self.kept))
        answers = Array((answers + added).suffix(Self.kept))
    }

    package var isWave: Bool {
        let invalid = answers.count { $0 }
        return invalid >= Self.fewestInWave && invalid * Self.answersPerInvalid > answers.count
    }
}
