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
        description = "'\(text.shortened(to: Self.maximumLength).escapingInvisible)'"
    }
}
