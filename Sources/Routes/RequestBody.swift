internal import Base
internal import Crypto
internal import GoogleOAuth
internal import HTTPServer

/// The body of a request as named values, from JSON or a form.
///
/// `null` and an empty text count as a missing member.
struct RequestBody: Sendable {
    private static let maximumText = 1024
    private static let maximumScope = 16_384
    /// Ten years: longer than any lifetime.
    private static let maximumSeconds: Double = 315_360_000

    private let members: [String: JSONValue]

    /// Reads an object from JSON, or the fields of a form if they are allowed.
    init(_ request: ServerRequest, allowsForm: Bool = false) throws(APIError) {
        guard request.declaresBody else { throw .undeclaredBody }
        switch request.mediaType {
        case "application/json":
            guard let members = JSONValue.object(in: request.body)?.object else { throw .unreadableBody }
            self.members = members
        case "application/x-www-form-urlencoded" where allowsForm:
            // A repeated field becomes an array, which is valid only for a list.
            members = Dictionary(grouping: request.form, by: \.name).mapValues { fields in
                fields.count == 1 ? .string(fields[0].value) : .array(fields.map { .string($0.value) })
            }
        default: throw .unsupportedMediaType
        }
    }

    func text(_ name: String, limit: Int = maximumText) throws(APIError) -> String? {
        guard let text = try string(name) else { return nil }
        guard text.utf8.count <= limit else { throw .invalidField(name, mustBe: "shorter") }
        return text
    }

    /// Returns a required token, whose form the caller checks.
    func required(_ name: String) throws(APIError) -> String {
        guard let text = try string(name) else { throw .missingField(name) }
        return text
    }

    func token(_ name: String, limit: Int = Token.maximumLength) throws(APIError) -> Secret? {
        guard let text = try string(name) else { return nil }
        guard Token.isWellFormed(text) else { throw .invalidField(name, mustBe: "a token of visible ASCII") }
        guard text.utf8.count <= limit else { throw .invalidField(name, mustBe: "shorter") }
        return Secret(text)
    }

    /// Returns a number of seconds, from a number or a string of digits.
    func seconds(_ name: String) throws(APIError) -> Duration? {
        let digits: String
        switch members[name] {
        case nil, .null, .string(""): return nil
        case .number(let text), .string(let text): digits = text
        default: throw .invalidField(name, mustBe: "a number of seconds")
        }
        guard let seconds = Double(digits), (0...Self.maximumSeconds).contains(seconds) else {
            throw .invalidField(name, mustBe: "a number of seconds, at most ten years")
        }
        return .seconds(Int64(seconds))
    }

    /// Returns scopes separated by single spaces, from an array or from a text with spaces or commas.
    func scopes(_ name: String) throws(APIError) -> String? {
        let texts: [String]
        switch members[name] {
        case nil, .null: return nil
        case .string(let text): texts = [text]
        case .array(let values):
            texts = values.compactMap(\.string)
            guard texts.count == values.count else { throw .invalidField(name, mustBe: "a list of texts") }
        default: throw .invalidField(name, mustBe: "a list of texts, or one text with spaces between")
        }
        let scope = texts.flatMap { $0.split { $0 == " " || $0 == "," } }.joined(separator: " ")
        guard scope.utf8.count <= Self.maximumScope, scope.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
            throw .invalidField(name, mustBe: "a list of scopes in visible ASCII")
        }
        return scope.isEmpty ? nil : scope
    }

    private func string(_ name: String) throws(APIError) -> String? {
        switch members[name] {
        case nil, .null: return nil
        case .string(let text): return text.isEmpty ? nil : text
        default: throw .invalidField(name, mustBe: "a text")
        }
    }
}

extension ServerRequest {
    /// The type of the body without its parameters, in lower case.
    var mediaType: String? {
        guard let type = header("Content-Type")?.split(separator: ";").first else { return nil }
        return type.filter { $0 != " " && $0 != "\t" }.lowercased()
    }
}

/// The id of a user in the claims of a token.
extension JSONValue {
    /// Returns the user from `sub`, or from `user_id`, which PayPulse's login uses.
    func userID() throws(APIError) -> String {
        let subject = try Self.userID(self["sub"])
        let user = try Self.userID(self["user_id"])
        // Compared by bytes, as the store compares ids.
        guard let userID = subject ?? user, user.map({ $0.utf8.elementsEqual(userID.utf8) }) ?? true else {
            throw .invalidToken
        }
        return userID
    }

    /// Returns the user from the configured claim of a token of the shared secret.
    func userID(of claim: String) throws(APIError) -> String {
        claim == AppTokens.usualUserClaim ? try userID() : try userID(in: claim)
    }

    /// Returns the user from one claim.
    ///
    /// An address that the user has only claimed names nobody.
    func userID(in claim: String) throws(APIError) -> String {
        guard let userID = try Self.userID(self[claim]), claim != "email" || emailIsVerified == true else {
            throw .invalidToken
        }
        return userID
    }

    /// What the issuer says about the address, or `nil` if it says nothing.
    ///
    /// An address that the user has only claimed must not be linked to the Google account that owns it.
    var emailIsVerified: Bool? {
        switch self["email_verified"] {
        case nil, .null: nil
        case let value?: value == .bool(true) || value == .string("true")
        }
    }

    /// Returns a user's id, or `nil` if there is none.
    ///
    /// A number is refused: `42`, `42.0` and `"42"` could be one user for the worker, and two for the login that signed
    /// the token.
    private static func userID(_ value: JSONValue?) throws(APIError) -> String? {
        if value == nil || value == .null { return nil }
        guard let text = value?.string, text.isUserID else { throw .invalidToken }
        return text
    }
}

extension String {
    static let maximumUserIDLength = 255

    /// `true` for a short text without control characters.
    var isUserID: Bool {
        (1...Self.maximumUserIDLength).contains(utf8.count)
            && !unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

extension RandomSource {
    /// Returns a new user's id: the text of a random UUID (RFC 9562, section 5.4).
    func userID() -> String {
        let high = nextBits() & ~0xf000 | 0x4000
        let low = nextBits() & ~(0b11 << 62) | (0b10 << 62)
        let digits = [high, low].map { word in
            let text = String(word, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        var groups: [Substring] = []
        var rest = digits[...]
        for length in [8, 4, 4, 4, 12] {
            groups.append(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        return groups.joined(separator: "-")
    }
}
