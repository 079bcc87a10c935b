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

    /// The text quoted as one word of a shell command, so that users can copy the command from a message.
    package var shellWord: String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:,@%+=")
        guard isEmpty || !allSatisfy(plain.contains) else { return self }
        return "'" + replacing("'", with: "'\\''") + "'"
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
        !isEmpty && bytesSatisfy { $0.isASCIILetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains($0) }
    }

    /// `true` if the only control character is the tab: a line break would start another header.
    package var isHeaderValue: Bool { bytesSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 } }

    /// The same as `utf8.allSatisfy`, which takes twice as many instructions, for the text of every request.
    private func bytesSatisfy(_ isAllowed: (UInt8) -> Bool) -> Bool {
        let bytes = utf8Span.span
        for index in bytes.indices where !isAllowed(bytes[index]) { return false }
        return true
    }
}

extension BidirectionalCollection<UInt8> {
    /// The text without the blanks and carriage returns at both ends.
    package var trimmingBlanks: SubSequence {
        let isText = { (byte: UInt8) in byte != 0x20 && byte != 0x09 && byte != 0x0d }
        guard let first = firstIndex(where: isText), let last = lastIndex(where: isText) else { return prefix(0) }
        return self[first...last]
    }
}

/// Text from outside as an error can show it: quoted, escaped, cut short, and omitted if it might be a secret.
package struct DisplayedText: CustomStringConvertible {
    /// Enough to recognise a name, and short enough that a huge paste does not fill the terminal.
    private static let maximumLength = 80

    package let description: String

    package init(_ text: String) {
        guard !text.holdsCredential else {
            description = "(not shown: it looks like a token or a secret)"
            return
        }
        let shown = String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.maximumLength))).escapingInvisible
        let isCut = text.unicodeScalars.count > Self.maximumLength
        description = "'\(shown)\(isCut ? "…" : "")'"
    }
}

extension String {
    /// The text with escapes for control and format characters (bidirectional marks, terminal escapes), which could
    /// rewrite a message.
    ///
    /// A joiner stays between letters or emoji that it joins, as in a Persian name.
    package var escapingInvisible: String {
        var shown = ""
        let scalars = Array(unicodeScalars)
        for (index, scalar) in scalars.enumerated() {
            let isBetween = index > 0 && index + 1 < scalars.count
            let joins =
                scalar.isJoiner && isBetween && scalars[index - 1].takesJoiner && scalars[index + 1].takesJoiner
            if scalar.isInvisible, !joins {
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    /// `true` if the text looks like a credential, or a part of it after a sign such as a quote, a dash or `=`.
    ///
    /// Such text is refused where it does not belong, and never printed. Pasted JSON and `--token=…` match. A folder
    /// named `4/0` within a path does not.
    package var holdsCredential: Bool {
        var previous: Character = " "
        for index in indices {
            defer { previous = self[index] }
            guard !previous.isLetter, !previous.isNumber, previous != "/", previous != "." else { continue }
            if Self.beginsWithCredential(self[index...]) { return true }
        }
        return false
    }

    /// The prefixes of Google's credentials: refresh tokens, access tokens, client secrets and authorization codes
    /// (https://developers.google.com/identity/protocols/oauth2#size), and of the private-key block of a PEM file.
    private static let credentialPrefixes = ["1//", "ya29.", "GOCSPX-", "4/0", "-----BEGIN"]

    private static func beginsWithCredential(_ text: Substring) -> Bool {
        if credentialPrefixes.contains(where: { text.hasPrefix($0) }) { return true }
        guard text.hasPrefix("eyJ") || text.hasPrefix("1/") else { return false }
        let word = text.prefix { !$0.isWhitespace && !"\"'=:,{}".contains($0) }
        // A JSON Web Token has three dotted parts, the first an encoded JSON object
        // (https://www.rfc-editor.org/rfc/rfc7519#section-3). Google's early refresh tokens are `1/` and about forty
        // letters.
        return text.hasPrefix("eyJ") ? word.count(where: { $0 == "." }) == 2 : word.count > 30
    }
}

extension Unicode.Scalar {
    /// `true` for a character without a shape of its own.
    package var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    /// The zero-width joiner and non-joiner.
    fileprivate var isJoiner: Bool { value == 0x200c || value == 0x200d }

    /// `true` if a joiner beside it changes how it is drawn: a letter or mark of an Arabic or Indic script, or an emoji.
    ///
    /// Beside a Latin letter a joiner cannot be seen, and would make two names look alike.
    fileprivate var takesJoiner: Bool {
        switch properties.generalCategory {
        case .otherLetter, .nonspacingMark, .spacingMark: true
        default: properties.isEmoji && !isASCII
        }
    }
}

extension StringProtocol {
    /// `true` for 1 to 64 lower-case ASCII letters, digits and underscores: such a code is safe to log and to store.
    package var isLowerCaseCode: Bool {
        (1...64).contains(utf8.count)
            && utf8.allSatisfy { $0.isASCIILetterOrDigit && $0.asciiLowercased == $0 || $0 == UInt8(ascii: "_") }
    }

    /// `true` for 1 to 64 ASCII letters, digits, dots, underscores and hyphens: such an id is safe to log and to store.
    package var isPlainID: Bool {
        (1...64).contains(utf8.count)
            && utf8.allSatisfy { $0.isASCIILetterOrDigit || "._-".utf8.contains($0) }
    }

    /// `true` for one or more ASCII digits, without a sign or a blank.
    @inlinable package var isDecimalNumber: Bool {
        !isEmpty && utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}

/// The reason why a text is not what it should be, such as JSON, a URL or a list of services.
///
/// It never quotes the text, which can hold a secret.
package struct FormatError: Error, Hashable, Sendable, CustomStringConvertible {
    package let problem: String
    /// The byte at which the problem is, in JSON.
    package let offset: Int?

    package init(_ problem: String, at offset: Int? = nil) {
        self.problem = problem
        self.offset = offset
    }

    package var description: String { problem + (offset.map { " at byte \($0)" } ?? "") }
}

extension Int {
    /// The number with its noun, as in "1 token" and "2 tokens".
    package func counted(_ noun: String) -> String { "\(self) \(noun)\(self == 1 ? "" : "s")" }
}
