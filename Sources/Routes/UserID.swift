internal import Base

extension String {
    static let maximumUserIDLength = 255

    /// `true` for a short text without control characters.
    var isUserID: Bool {
        guard (1...Self.maximumUserIDLength).contains(utf8.count) else { return false }
        return !unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

extension RandomSource {
    /// Returns a new user's id: the text of a random UUID (RFC 9562, section 5.4).
    func userID() -> String {
        let high = nextBits() & ~0xf000 | 0x4000
        let low = nextBits() & ~(0b11 << 62) | (0b10 << 62)
        let digits = [high, low].map { word in
            let text = String(word, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        var groups: [Substring] = []
        var rest = digits[...]
        for length in [8, 4, 4, 4, 12] {
            groups.append(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        return groups.joined(separator: "-")
    }
}
