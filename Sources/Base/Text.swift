extension String {
    /// Returns the longest prefix that fits into `limit` bytes of UTF-8, followed by `…` if text was removed.
    ///
    /// `limit` must be at least 3, the length of `…` in bytes.
    package func capped(at limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(utf8.startIndex, offsetBy: limit - 3)
        // A byte of the form 10xxxxxx is inside a character: step back to the start of the character.
        while utf8[end] & 0b1100_0000 == 0b1000_0000 { end = utf8.index(before: end) }
        return self[..<end] + "…"
    }
}

extension Unicode.Scalar {
    /// `true` if this character could break, hide or reorder the text that a terminal or a line reader shows.
    ///
    /// These are the C0 and C1 controls with DEL, the line and paragraph separators, and the bidirectional controls
    /// (https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters), which reverse the text after them.
    package var disturbsTerminals: Bool {
        switch value {
        case 0...0x1f, 0x7f...0x9f, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069, 0xfeff: true
        default: false
        }
    }
}

extension UInt8 {
    /// This byte, or the small letter if it is a capital letter of ASCII.
    @inlinable package var asciiLowercased: UInt8 { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self ? self | 0x20 : self }

    @inlinable package var isASCIILetterOrDigit: Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= self | 0x20 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= self
    }
}

/// The parts of an HTTP header (https://www.rfc-editor.org/rfc/rfc9110#section-5).
extension String {
    package var isHeaderName: Bool {
        !isEmpty && utf8.allSatisfy { $0.isASCIILetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains($0) }
    }

    /// `true` if the only control character is the tab: a line break would start another header.
    package var isHeaderValue: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 } }
}
