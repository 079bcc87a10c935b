import Base

/// The last answers about one client's proven grants, which distinguish a wave of refusals from users who left.
///
/// If something breaks at Google, or in a configuration, many grants are refused at once although their
/// users never revoked anything. Only proven grants count, so an import of dead tokens does not look like a wave.
struct RecentAnswers: Hashable, Sendable {
    /// The number of answers that are kept.
    static let maximumAnswers = 200
    /// The smallest number of refusals in a wave.
    static let fewestInWave = 20
    /// A wave has more than one refusal in this many answers.
    static let answersPerRefusal = 5

    /// `true` for each refusal, the oldest first.
    private(set) var answers: [Bool] = []

    mutating func append(isRefusal: Bool) {
        if answers.count >= Self.maximumAnswers { answers.removeFirst(answers.count - Self.maximumAnswers + 1) }
        answers.append(isRefusal)
    }

    /// Adds answers that were not refusals.
    mutating func append(successes count: Int) {
        let added = [Bool](repeating: false, count: min(max(0, count), Self.maximumAnswers))
        answers = Array((answers + added).suffix(Self.maximumAnswers))
    }

    var isWave: Bool {
        let refused = answers.count { $0 }
        return refused >= Self.fewestInWave && refused * Self.answersPerRefusal > answers.count
    }
}

/// The stored form: one character per answer, `-` for a refusal and `+` for anything else.
extension RecentAnswers {
    init(_ stored: JSONValue?) {
        let signs = (stored?.string ?? "").utf8.filter { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "+") }
        answers = signs.suffix(Self.maximumAnswers).map { $0 == UInt8(ascii: "-") }
    }

    var text: String {
        String(decoding: answers.map { $0 ? UInt8(ascii: "-") : UInt8(ascii: "+") }, as: UTF8.self)
    }
}
