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
        var refreshLifetime: Int64?
        if let value = body["refresh_token_expires_in"], value != .null {
            guard let seconds = Self.seconds(value, upTo: Self.maximumRefreshLifetime, absent: nil) else { return nil }
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

    /// Reads a good answer in the usual form, and returns `nil` for any other answer, which might be good too.
    init?(plain text: RawSpan) {
        guard let answer = PlainAnswer(text),
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

/// The syntax of a token: visible ASCII that is safe in a header and in a form (RFC 6749 appendix A, without the
/// space).
package enum Token {
    /// Google documents 2,048 bytes and says that sizes can vary. A longer text than this is not a token.
    package static let maximumLength = 16_384

    package static func isWellFormed(_ text: String) -> Bool {
        let bytes = text.utf8Span.span
        return (1...maximumLength).contains(bytes.count)
            && bytes.indices.allSatisfy { (0x21...0x7e).contains(bytes[$0]) }
    }

    /// Returns the token that a text is, or `nil` if it is not well-formed.
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

    /// The token of an optional member, which can be missing, `null` or empty.
    package struct OptionalMember {
        package let value: Secret?
        package let isWellFormed: Bool
    }

    package static func optional(_ value: JSONValue?) -> OptionalMember {
        guard let value, value != .null, value != .string("") else {
            return OptionalMember(value: nil, isWellFormed: true)
        }
        let token = required(value)
        return OptionalMember(value: token, isWellFormed: token != nil)
    }
}

/// The members of an answer in the usual form: one object, whose values are strings without escapes or whole numbers.
///
/// Nearly every answer has this form. It is read in place: the tokens are never copied into strings, which are not
/// wiped, and it costs a tenth of parsing the answer into values. Every other answer is left to `JSONValue`, whose
/// reading is the definition: a test compares both.
struct PlainAnswer {
    /// The part of the text between the quotes, or the digits.
    enum Member {
        case missing
        case text(Range<Int>)
        case number(Int64)
    }

    private(set) var accessToken = Member.missing
    private(set) var lifetime = Member.missing
    private(set) var type = Member.missing
    private(set) var scope = Member.missing
    private(set) var refreshToken = Member.missing
    private(set) var refreshTokenLifetime = Member.missing
    private(set) var idToken = Member.missing

    /// Returns `nil` for an answer in another form, for an error, and for one that names a member twice.
    init?(_ text: RawSpan) {
        var offset = Self.skipSpace(in: text, from: 0)
        guard Self.has("{", in: text, at: offset) else { return nil }
        repeat {
            offset = Self.skipSpace(in: text, from: offset + 1)
            guard let name = Self.text(in: text, at: offset) else { return nil }
            offset = Self.skipSpace(in: text, from: name.upperBound + 1)
            guard Self.has(":", in: text, at: offset) else { return nil }
            offset = Self.skipSpace(in: text, from: offset + 1)
            let value: Member
            if let string = Self.text(in: text, at: offset) {
                value = .text(string)
                offset = string.upperBound + 1
            } else if let (number, end) = Self.number(in: text, at: offset) {
                value = .number(number)
                offset = end
            } else {
                return nil
            }
            guard set(value, named: text.extracting(name)) else { return nil }
            offset = Self.skipSpace(in: text, from: offset)
        } while Self.has(",", in: text, at: offset)
        guard Self.has("}", in: text, at: offset), Self.skipSpace(in: text, from: offset + 1) == text.byteCount else {
            return nil
        }
    }

    private mutating func set(_ value: Member, named name: RawSpan) -> Bool {
        switch name.byteCount {
        case 5 where name.isEqual(to: "scope"): Self.set(&scope, to: value)
        case 5 where name.isEqual(to: "error"): false
        case 8 where name.isEqual(to: "id_token"): Self.set(&idToken, to: value)
        case 10 where name.isEqual(to: "expires_in"): Self.set(&lifetime, to: value)
        case 10 where name.isEqual(to: "token_type"): Self.set(&type, to: value)
        case 12 where name.isEqual(to: "access_token"): Self.set(&accessToken, to: value)
        case 13 where name.isEqual(to: "refresh_token"): Self.set(&refreshToken, to: value)
        case 24 where name.isEqual(to: "refresh_token_expires_in"): Self.set(&refreshTokenLifetime, to: value)
        default: true
        }
    }

    private static func set(_ member: inout Member, to value: Member) -> Bool {
        guard case .missing = member else { return false }
        member = value
        return true
    }

    // MARK: Scanning

    /// Returns the content of a string of printable ASCII characters without escapes.
    private static func text(in text: RawSpan, at start: Int) -> Range<Int>? {
        guard has("\"", in: text, at: start) else { return nil }
        var end = start + 1
        while end < text.byteCount {
            let byte = text.byte(at: end)
            if byte == UInt8(ascii: "\"") { return start + 1..<end }
            guard byte &- 0x20 < 0x5f, byte != UInt8(ascii: "\\") else { return nil }
            end += 1
        }
        return nil
    }

    /// Returns a whole number without a sign and its end.
    private static func number(in text: RawSpan, at start: Int) -> (Int64, end: Int)? {
        var value: Int64 = 0
        var end = start
        while end < text.byteCount, text.byte(at: end) &- UInt8(ascii: "0") < 10 {
            value = value * 10 + Int64(text.byte(at: end) - UInt8(ascii: "0"))
            end += 1
            guard end - start < 16 else { return nil }
        }
        guard end > start else { return nil }
        let hasLeadingZero = end > start + 1 && text.byte(at: start) == UInt8(ascii: "0")
        return hasLeadingZero ? nil : (value, end)
    }

    private static func skipSpace(in text: RawSpan, from start: Int) -> Int {
        var offset = start
        while offset < text.byteCount {
            switch text.byte(at: offset) {
            case 0x20, 0x0a, 0x0d, 0x09: offset += 1
            default: return offset
            }
        }
        return offset
    }

    private static func has(_ character: Unicode.Scalar, in text: RawSpan, at offset: Int) -> Bool {
        offset < text.byteCount && text.byte(at: offset) == UInt8(ascii: character)
    }
}

extension RawSpan {
    func isEqual(to name: String) -> Bool {
        let expected = name.utf8Span.span
        guard expected.count == byteCount else { return false }
        return expected.indices.allSatisfy { expected[$0] == byte(at: $0) }
    }
}
