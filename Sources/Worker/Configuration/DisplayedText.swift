/// Text from outside as an error may show it: quoted, escaped, cut short, and omitted if it may be a secret.
package struct DisplayedText: CustomStringConvertible {
    /// Enough to recognise a name, and short enough that a huge paste does not fill the terminal.
    private static let limit = 80

    package let description: String

    package init(_ text: String) {
        guard !CredentialDetector.matches(text) else {
            description = "(not shown: it looks like a token or a secret)"
            return
        }
        var shown = ""
        for scalar in text.unicodeScalars.prefix(Self.limit) {
            // Control and format characters (bidirectional marks, terminal escapes) could rewrite the message.
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            default:
                shown.unicodeScalars.append(scalar)
            }
        }
        let isCut = text.unicodeScalars.count > Self.limit
        description = "'\(shown)\(isCut ? "…" : "")'"
    }
}
