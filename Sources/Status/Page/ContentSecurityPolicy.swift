private import Crypto

extension StatusPage {
    /// The value of `Content-Security-Policy` for the page.
    ///
    /// It allows the page's own style and script, by their hashes, requests to the worker itself, and the icon in a
    /// `data:` URL.
    package static let contentSecurityPolicy = [
        "default-src 'none'",
        "style-src '\(hash(PageStyle.text))'",
        "script-src '\(hash(PageScript.text))'",
        "img-src data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ].joined(separator: "; ")

    /// The hash of a text as the policy writes it: in the standard alphabet of Base64, whose 32 bytes end with one `=`.
    static func hash(_ text: StaticString) -> String {
        let encoded = Base64URL.encode(Digest.sha256(Array(text.description.utf8)))
        let standard = encoded.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return "sha256-\(String(standard))="
    }
}
