internal import Base
internal import Crypto

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
    private static let longestScope = 16_384

    init?(_ body: JSONValue, rotated: Secret?) {
        guard let accessToken = Token.required(body["access_token"]),
            let lifetime = Self.seconds(body["expires_in"], upTo: Self.longestLifetime, absent: Self.defaultLifetime),
            let type = Self.text(body["token_type"], absent: "Bearer"),
            type == "Bearer" || type.lowercased() == "bearer",
            let scope = Self.text(body["scope"], absent: ""), scope.utf8.count <= Self.longestScope
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

    /// Reads a good answer in the usual form; returns `nil` for any other answer, which may be good too.
    init?(plain text: RawSpan) {
        guard let answer = PlainAnswer(text),
            case .text(let token) = answer.accessToken, let accessToken = Token.required(text.extracting(token)),
            case .number(let lifetime) = answer.lifetime, (1...Self.longestLifetime).contains(lifetime),
            case .text(let type) = answer.type, text.extracting(type).isEqual(to: "Bearer"),
            case .text(let scope) = answer.scope, (1...Self.longestScope).contains(scope.count)
        else { return nil }
        self.init(
            accessToken: accessToken,
            lifetime: .seconds(lifetime),
            type: "Bearer",
            scope: text.extracting(scope).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        )
        switch answer.refreshToken {
        case .missing: break
        case .number: return nil
        case .text(let token):
            guard let token = Token.required(text.extracting(token)) else { return nil }
            rotated = token
        }
        switch answer.refreshTokenLifetime {
        case .missing: break
        case .text: return nil
        case .number(let seconds):
            guard (1...Self.longestRefreshLifetime).contains(seconds) else { return nil }
            refreshTokenLifetime = .seconds(seconds)
        }
        switch answer.idToken {
        case .missing: break
        case .number: return nil
        case .text(let token): idToken = Token.required(text.extracting(token))
        }
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
