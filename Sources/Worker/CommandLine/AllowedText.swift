/// The characters and the length that a text may have.
struct AllowedText: Sendable {
    let lengthLimit: Int
    let signs: String

    func matches(_ text: String) -> Bool {
        (1...lengthLimit).contains(text.utf8.count)
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || signs.contains($0) }
    }

    /// The rule in words for people.
    var rule: String { "up to \(lengthLimit) letters, digits and \(signs)" }
}
