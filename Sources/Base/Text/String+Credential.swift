extension String {
    /// `true` if the text looks like a credential, or a part of it after a sign such as a quote, a dash or `=`.
    ///
    /// Such text is refused where it does not belong, and never printed. Pasted JSON and `--token=…` match. A folder
    /// named `4/0` within a path does not.
    package var holdsCredential: Bool {
        var previous: Character = " "
        for index in indices {
            defer { previous = self[index] }
            if !previous.continuesIntoNext, Self.beginsWithCredential(self[index...]) { return true }
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
        // (https://www.rfc-editor.org/rfc/rfc7519#section-3).
        if text.hasPrefix("eyJ") { return word.count(where: { $0 == "." }) == 2 }
        // Google's early refresh tokens are `1/` and about forty letters.
        return word.count > 30
    }
}

extension Character {
    /// `true` if what follows belongs to the same word or path.
    fileprivate var continuesIntoNext: Bool { isLetter || isNumber || self == "/" || self == "." }
}
