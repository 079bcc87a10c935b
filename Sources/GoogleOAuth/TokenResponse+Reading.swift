internal import JSON
internal import Secrets

/// Reads the members of a good answer.
extension TokenResponse {
    /// The assumed lifetime if the answer does not name one: that of Google's access tokens.
    private static let defaultLifetime: Int64 = 3600
    /// The longest plausible lifetime; a larger number is an error.
    private static let longestLifetime: Int64 = 400 * 86_400
    /// The longest plausible lifetime of a refresh token.
    ///
    /// Google's time-based access ends within a year; ten years allow for other servers.
    private static let longestRefreshLifetime: Int64 = 3_660 * 86_400

    init?(_ body: JSONValue, rotated: Secret?) {
        guard let accessToken = Token.required(body["access_token"]),
            let lifetime = Self.seconds(body["expires_in"], upTo: Self.longestLifetime, absent: Self.defaultLifetime),
            let type = Self.text(body["token_type"], absent: "Bearer"),
            type == "Bearer" || type.lowercased() == "bearer",
            let scope = Self.text(body["scope"], absent: ""), scope.utf8.count <= 16_384
        else { return nil }
        var refreshLifetime: Int64?
        if let value = body["refresh_token_expires_in"], value != .null {
            guard let seconds = Self.seconds(value, upTo: Self.longestRefreshLifetime, absent: nil) else { return nil }
            refreshLifetime = seconds
        }
        self.init(
            accessToken: accessToken,
            lifetime: .seconds(lifetime),
            type: "Bearer",
            scope: scope.isEmpty ? nil : scope,
            rotated: rotated,
            refreshTokenLifetime: refreshLifetime.map { .seconds($0) },
            idToken: Token.optional(body["id_token"]).value
        )
    }

    private static func seconds(_ value: JSONValue?, upTo longest: Int64, absent: Int64?) -> Int64? {
        guard let value, value != .null else { return absent }
        guard let seconds = value.integer, (1...longest).contains(seconds) else { return nil }
        return seconds
    }

    private static func text(_ value: JSONValue?, absent: String) -> String? {
        guard let value, value != .null else { return absent }
        return value.string
    }
}
