/// Recognises text that looks like a credential, so that it is refused where it does not belong, and never printed.
package enum CredentialDetector {
    /// The prefixes of Google's credentials: refresh tokens, access tokens, client secrets and authorization codes
    /// (https://developers.google.com/identity/protocols/oauth2#size), and of the private-key block of a PEM file.
    private static let prefixes = ["1//", "ya29.", "GOCSPX-", "4/0", "-----BEGIN"]

    /// `true` if the text looks like a credential, or a part of it after a sign such as a quote, a dash or `=`.
    ///
    /// So pasted JSON and `--token=…` match; a folder named `4/0` within a path does not.
    package static func matches(_ text: String) -> Bool {
        var previous: Character = " "
        for index in text.indices {
            defer { previous = text[index] }
            guard !previous.isLetter, !previous.isNumber, previous != "/", previous != "." else { continue }
            if beginsWithCredential(text[index...]) { return true }
        }
        return false
    }

    private static func beginsWithCredential(_ text: Substring) -> Bool {
        if prefixes.contains(where: { text.hasPrefix($0) }) { return true }
        guard text.hasPrefix("eyJ") || text.hasPrefix("1/") else { return false }
        let word = text.prefix { !$0.isWhitespace && !"\"'=:,{}".contains($0) }
        // A JSON Web Token has three dotted parts, the first an encoded JSON object
        // (https://www.rfc-editor.org/rfc/rfc7519#section-3). Google's early refresh tokens are `1/` and about forty
        // letters.
        return text.hasPrefix("eyJ") ? word.count(where: { $0 == "." }) == 2 : word.count > 30
    }
}
