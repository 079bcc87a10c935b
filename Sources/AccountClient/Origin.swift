import Foundation

/// Scheme, host and port: a token is never sent to another origin.
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

    /// `true` if requests cannot be read in transit.
    var keepsSecrets: Bool {
        scheme == "https" || ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
    }
}
