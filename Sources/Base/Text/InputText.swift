/// The rules for texts of settings, arguments and records, with the words that explain a mistake.
package enum InputText {
    /// The limit of a value of any kind: Linux's PATH_MAX, and longer than any sensible URL or list of ids.
    package static let maximumLength = 4096

    /// Longer than any client id seen. Google's have about 72 characters.
    package static let maximumClientIDLength = 256

    /// Checks the rules for values of all kinds: one line, neither empty nor too long, and not like a secret.
    package static func checkText(_ text: String) throws(InputError) {
        guard text.utf8.count <= maximumLength else {
            throw InputError("is longer than \(maximumLength) bytes")
        }
        guard !text.utf8.contains(where: { $0 == 0 || $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else {
            throw InputError("must be one line without NUL bytes")
        }
        guard !text.isEmpty else { throw InputError("is empty") }
        guard !text.holdsCredential else {
            throw InputError(
                """
                looks like a token or a secret (not shown), which no setting takes: tokens are read from standard \
                input, secrets from a file
                """
            )
        }
    }

    package static func clientID(_ text: String) throws(InputError) -> String {
        guard text.utf8.count <= maximumClientIDLength, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw InputError(
                "\(DisplayedText(text)) is not a client id: up to \(maximumClientIDLength) visible ASCII characters"
            )
        }
        return text
    }
}
