/// Recognises text that looks like a credential, so that it is refused where it does not belong and never echoed.
enum CredentialShape {
    /// What Google's credentials begin with: refresh tokens, access tokens, client secrets and authorization codes
    /// (https://developers.google.com/identity/protocols/oauth2#size), and the private-key block of a PEM file.
    private static let prefixes = ["1//", "ya29.", "GOCSPX-", "4/0", "-----BEGIN"]

    /// Whether the text, or any part of it that stands behind a quote, an equals sign, a colon or a space, looks like
    /// a credential: a pasted JSON or `token=…` counts too.
    static func matches(_ text: String) -> Bool {
        let pieces = text.split { character in
            character.isWhitespace || "\"'=:,{}".contains(character)
        }
        return pieces.contains { piece in
            prefixes.contains { piece.hasPrefix($0) } || isJSONWebToken(piece) || isOldRefreshToken(piece)
        }
    }

    /// Three dotted parts of which the first is a base64url-encoded JSON object
    /// (https://www.rfc-editor.org/rfc/rfc7519#section-3).
    private static func isJSONWebToken(_ piece: Substring) -> Bool {
        piece.hasPrefix("eyJ") && piece.count(where: { $0 == "." }) == 2
    }

    /// Refresh tokens of Google's first years: `1/` and forty or so letters.
    private static func isOldRefreshToken(_ piece: Substring) -> Bool {
        piece.hasPrefix("1/") && piece.count > 30
    }
}
