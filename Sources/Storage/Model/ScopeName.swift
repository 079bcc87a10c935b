/// The name of one scope (https://www.rfc-editor.org/rfc/rfc6749#section-3.3).
package struct ScopeName: Hashable, Sendable {
    /// Two scopes that have a short name for requests, while Google's answers have the long one
    /// (https://developers.google.com/identity/protocols/oauth2/scopes#google-sign-in).
    private static let longNames = [
        "email": "https://www.googleapis.com/auth/userinfo.email",
        "profile": "https://www.googleapis.com/auth/userinfo.profile",
    ]

    /// The name as the caller wrote it.
    package let text: String

    /// The name by which scopes are compared.
    package var canonical: String { Self.longNames[text] ?? text }

    package init?(_ text: some StringProtocol) {
        let isScope = text.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }
        guard isScope, !text.isEmpty else { return nil }
        self.text = String(text)
    }

    /// Returns the requested scopes that are not in the granted ones, which are separated by spaces.
    ///
    /// An empty list is not known yet, and nothing counts as missing: Google grants no empty one, and its first answer
    /// to a refresh names the scopes.
    package static func missing(_ requested: [ScopeName], in granted: String) -> [String] {
        guard !requested.isEmpty, !granted.isEmpty else { return [] }
        let names = Set(granted.split(separator: " ").map { longNames[String($0)] ?? String($0) })
        return requested.filter { !names.contains($0.canonical) }.map(\.text)
    }

    /// Returns the scopes of `former` that are not among those granted now. Both lists are separated by spaces.
    package static func lost(from former: String, to granted: String) -> [String] {
        guard former != granted else { return [] }
        return missing(former.split(separator: " ").compactMap { ScopeName($0) }, in: granted)
    }
}
