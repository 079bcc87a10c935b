private import Crypto

extension StatusPage {
    /// The value of `Content-Security-Policy` for the page.
    ///
    /// It allows the page's own style and script, by their hashes, requests to the worker itself, and the icon in a
    /// `data:` URL.
    package static let contentSecurityPolicy = [
        "default-src 'none'",
        "style-src '\(hash(style))'",
        "script-src '\(hash(script))'",
        "img-src data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ].joined(separator: "; ")

    /// The hash of a text as the policy writes it.
    static func hash(_ text: StaticString) -> String {
        "sha256-\(Base64.encode(Digest.sha256(Array(text.description.utf8))))"
    }
}
