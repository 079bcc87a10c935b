import Foundation

/// Scheme, host and port: what a token may not leave.
struct Origin: Equatable {
    private let scheme: String
    private let host: String
    private let port: Int

    init?(_ url: URL) {
        let url = url.absoluteURL
        guard let scheme = url.scheme?.lowercased(), scheme == "https" || scheme == "http",
            let host = url.host?.lowercased(), !host.isEmpty
        else { return nil }
        self.scheme = scheme
        self.host = host
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    /// Whether nobody on the way can read what is sent.
    var keepsSecrets: Bool {
        scheme == "https" || ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
    }
}
