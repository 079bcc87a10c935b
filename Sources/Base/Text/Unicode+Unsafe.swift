/// Characters that could hide, break or reorder a text, and the form in which they are shown.
extension Unicode.Scalar {
    /// `true` for a character without a shape of its own.
    package var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

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

    /// The form in which such a character is shown, as in `\u{202e}`.
    package var escape: String { "\\u{\(String(value, radix: 16))}" }
}
