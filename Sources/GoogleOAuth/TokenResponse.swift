package import Base
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
    /// The remaining lifetime of the refresh token, if the answer gives it.
    package var refreshTokenLifetime: Duration?
    /// The ID token that Google adds if the grant has the scope `openid`.
    var idToken: Secret?
}

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

extension TokenResponse {
    /// The id of the Google account that the tokens belong to, from the ID token; `nil` if the answer has none that can
    /// be read.
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

/// The syntax of a token: visible ASCII that is safe in a header and in a form (RFC 6749 appendix A, without the
/// space).
package enum Token {
    /// Google documents 2,048 bytes and says that sizes may vary; a longer text than this is not a token.
    package static let maximumLength = 16_384

    package static func isWellFormed(_ text: String) -> Bool {
        let bytes = text.utf8Span.span
        return (1...maximumLength).contains(bytes.count)
            && bytes.indices.allSatisfy { (0x21...0x7e).contains(bytes[$0]) }
    }

    /// Returns the token that a text is; `nil` if it is not well-formed.
    static func required(_ text: RawSpan) -> Secret? {
        guard (1...maximumLength).contains(text.byteCount) else { return nil }
        for offset in 0..<text.byteCount where !(0x21...0x7e).contains(text.byte(at: offset)) { return nil }
        return Secret(copying: text)
    }

    /// Returns the token of a required member.
    package static func required(_ value: JSONValue?) -> Secret? {
        guard let text = value?.string, isWellFormed(text) else { return nil }
        return Secret(text)
    }

    /// Returns the token of an optional member, which may be missing, `null` or empty, and `true` if the member is
    /// well-formed.
    package static func optional(_ value: JSONValue?) -> (value: Secret?, isWellFormed: Bool) {
        guard let value, value != .null, value != .string("") else { return (nil, true) }
        let token = required(value)
        return (token, token != nil)
    }
}
