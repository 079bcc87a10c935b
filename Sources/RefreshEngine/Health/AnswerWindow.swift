package import Store

/// The last answers about one client's grants, by which a wave of `invalid_grant` is told from users who left.
///
/// When something breaks at Google, or in a configuration, many grants answer `invalid_grant` at once although their
/// users never revoked anything. Only grants that a refresh has proven count: an import of dead tokens is no wave.
package struct AnswerWindow: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package var grant: GrantID
        package var saysInvalid: Bool

        package init(grant: GrantID, saysInvalid: Bool) {
            self.grant = grant
            self.saysInvalid = saysInvalid
        }
    }

    /// How many answers are looked at.
    package static let span = 200
    /// A wave has at least this many answers of `invalid_grant`.
    package static let fewestInWave = 20
    /// A wave has more than one `invalid_grant` in this many answers.
    package static let answersPerInvalid = 5

    package private(set) var entries: [Entry]

    package init(entries: [Entry] = []) {
        self.entries = Array(entries.suffix(Self.span))
    }

    package mutating func append(_ entry: Entry) {
        if entries.count >= Self.span { entries.removeFirst(entries.count - Self.span + 1) }
        entries.append(entry)
    }

    package var isWave: Bool {
        let invalid = entries.count { $0.saysInvalid }
        return invalid >= Self.fewestInWave && invalid * Self.answersPerInvalid > entries.count
    }

    /// The grants whose answers make the wave.
    package var invalidGrants: [GrantID] { entries.filter(\.saysInvalid).map(\.grant) }
}
