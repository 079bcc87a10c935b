extension String {
    /// The text with a capital letter and a full stop.
    var sentence: String {
        let start = prefix(1).uppercased() + dropFirst()
        return start.hasSuffix(".") ? start : start + "."
    }

    /// The text up to its first full stop or semicolon.
    var firstSentence: String {
        let end = [". ", "; "].compactMap { firstRange(of: $0)?.lowerBound }.min()
        let sentence = end.map { self[..<$0] } ?? self[...]
        return String(sentence.last == "." ? sentence.dropLast() : sentence)
    }
}
