/// The last answers about one client's proven grants, by which a wave of `invalid_grant` is told from users who left.
///
/// When something breaks at Google, or in a configuration, many grants answer `invalid_grant` at once although their
/// users never revoked anything. Only grants that a refresh has proven count: an import of dead tokens is no wave.
package struct AnswerWindow: Hashable, Sendable {
    /// How many answers are looked at.
    package static let span = 200
    /// A wave has at least this many answers of `invalid_grant`.
    package static let fewestInWave = 20
    /// A wave has more than one `invalid_grant` in this many answers.
    package static let answersPerInvalid = 5

    /// `true` for each answer of `invalid_grant`, the oldest first.
    package private(set) var answers: [Bool]

    package init(answers: [Bool] = []) {
        self.answers = Array(answers.suffix(Self.span))
    }

    package mutating func append(saysInvalid: Bool) {
        if answers.count >= Self.span { answers.removeFirst(answers.count - Self.span + 1) }
        answers.append(saysInvalid)
    }

    package var isWave: Bool {
        let invalid = answers.count { $0 }
        return invalid >= Self.fewestInWave && invalid * Self.answersPerInvalid > answers.count
    }
}
