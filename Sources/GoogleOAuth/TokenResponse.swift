import Base
package import Crypto

/// The content of a good answer to a refresh.
package struct TokenResponse: Sendable {
    package var accessToken: Secret
    package var lifetime: Duration
    package var type: String
    /// The scopes of this access token, separated by spaces, if the answer names them.
    package var scope: String?
    /// The refresh token that replaces the one that was sent, if the server rotates.
    package var rotated: Secret?
    /// The remaining lifetime of the refresh token, or of the whole consent if that ends before, if the answer gives one.
    package var refreshTokenLifetime: Duration?
    /// The longest pause between two refreshes after which the refresh token still works, if the answer gives it.
    package var refreshTokenTimeout: Duration?
    /// The ID token that Google adds if the grant has the scope `openid`.
    var idToken: Secret?
}

/// Reads the members of a good answer.
extension TokenResponse {
    /// The assumed lifetime if the answer does not name one: that of Google's access tokens.
    private static let defaultLifetime: Int64 = 3600
    /// The longest plausible lifetime. A larger number is an error.
    private static let maximumLifetime: Int64 = 400 * 86_400
    /// The longest plausible lifetime of a refresh token. Google's time-based access ends within a year. Ten years
    /// allow for other servers.
    private static let maximumRefreshLifetime: Int64 = 3_660 * 86_400
    private static let maximumScope = 16_384

    init?(_ body: JSONValue, rotated: Secret?) {
        guard let accessToken = Token.required(body["access_token"]),
            let lifetime = Self.seconds(body["expires_in"], upTo: Self.maximumLifetime, absent: Self.defaultLifetime),
            let type = Self.text(body["token_type"], absent: "Bearer"), type.lowercased() == "bearer",
            let scope = Self.text(body["scope"], absent: ""), scope.utf8.count <= Self.maximumScope
        else { return nil }
        var refreshLifetime: Duration?
        if let value = body["refresh_token_expires_in"], value != .null {
            guard let seconds = Self.seconds(value, upTo: Self.maximumRefreshLifetime, absent: nil) else { return nil }
            refreshLifetime = .seconds(seconds)
        }
        let consentLifetime = Self.draftSpan(body["authorization_expires_in"])
        self.init(
            accessToken: accessToken,
            lifetime: .seconds(lifetime),
            type: "Bearer",
            scope: scope.isEmpty ? nil : scope,
            rotated: rotated,
            refreshTokenLifetime: [refreshLifetime, consentLifetime].compactMap(\.self).min(),
            refreshTokenTimeout: Self.draftSpan(body["refresh_token_timeout"]),
            idToken: Token.optional(body["id_token"]).value
        )
    }

    /// Reads a good answer in the usual form, and returns `nil` for any other answer, which might be good too.
    init?(plain text: RawSpan) {
        guard let answer = UnescapedTokenJSON(text),
            case .text(let token) = answer.accessToken, let accessToken = Token.required(text.extracting(token)),
            case .number(let lifetime) = answer.lifetime, (1...Self.maximumLifetime).contains(lifetime),
            case .text(let type) = answer.type, text.extracting(type).isEqual(to: "Bearer"),
            case .text(let scope) = answer.scope, (1...Self.maximumScope).contains(scope.count)
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
            guard (1...Self.maximumRefreshLifetime).contains(seconds) else { return nil }
            refreshTokenLifetime = .seconds(seconds)
        }
        switch answer.idToken {
        case .missing: break
        case .number: return nil
        case .text(let token): idToken = Token.required(text.extracting(token))
        }
    }

    /// Reads a member of a draft (https://datatracker.ietf.org/doc/draft-ietf-oauth-refresh-token-expiration/).
    ///
    /// The draft can still change. So another form of it is ignored, and does not make the answer a faulty one.
    private static func draftSpan(_ value: JSONValue?) -> Duration? {
        guard let seconds = seconds(value, upTo: maximumRefreshLifetime, absent: nil) else { return nil }
        return .seconds(seconds)
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

extension TokenResponse {
    /// The id of the Google account that the tokens belong to, from the ID token, or `nil` if the answer has none that
    /// can be read.
    ///
    /// Its signature does not have to be checked, because it came directly from the token endpoint over TLS
    /// (https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation, 6).
    package var account: String? {
        guard let parts = idToken?.reveal().split(separator: ".", omittingEmptySubsequences: false), parts.count == 3,
            let payload = Base64URL.decode(String(parts[1])),
            let subject = JSONValue.object(in: payload)?["sub"]?.string,
            (1...255).contains(subject.utf8.count)
        else { return nil }
        return subject
    }
}
