internal import Base
internal import Crypto
internal import GoogleOAuth
internal import HTTPServer

/// The body of a request as named values, from JSON or a form.
enum RequestBody {
    /// Reads an object from JSON.
    static func json(_ request: ServerRequest) throws(RequestBodyError) -> BodyFields {
        guard request.declaresBody else { throw .undeclared }
        guard request.mediaType == "application/json" else { throw .unsupportedMediaType }
        return try object(in: request.body)
    }

    /// Reads an object from JSON, or the fields of a form.
    static func jsonOrForm(_ request: ServerRequest) throws(RequestBodyError) -> BodyFields {
        guard request.declaresBody else { throw .undeclared }
        switch request.mediaType {
        case "application/json": return try object(in: request.body)
        case "application/x-www-form-urlencoded": return BodyFields(form(request))
        default: throw .unsupportedMediaType
        }
    }

    private static func object(in body: [UInt8]) throws(RequestBodyError) -> BodyFields {
        guard let members = JSONValue.object(in: body)?.object else { throw .unreadable }
        return BodyFields(members)
    }

    /// Returns a form's fields; a repeated field becomes an array, which is valid only for a list.
    private static func form(_ request: ServerRequest) -> [String: JSONValue] {
        Dictionary(grouping: request.form, by: \.name).mapValues { fields in
            fields.count == 1 ? .string(fields[0].value) : .array(fields.map { .string($0.value) })
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

/// The members of a body; `null` and an empty text count as a missing member.
struct BodyFields: Sendable {
    private static let longestText = 1024
    private static let longestScope = 16_384
    /// Ten years in seconds: longer than any lifetime.
    private static let maxSeconds: Double = 315_360_000

    private let members: [String: JSONValue]

    init(_ members: [String: JSONValue]) {
        self.members = members
    }

    func text(_ name: String, limit: Int = longestText) throws(RequestBodyError) -> String? {
        guard let text = try string(name) else { return nil }
        guard text.utf8.count <= limit else { throw .invalid(name, mustBe: "shorter") }
        return text
    }

    /// Returns a required token; the caller checks whether it is well-formed.
    func required(_ name: String) throws(RequestBodyError) -> String {
        guard let text = try string(name) else { throw .missing(name) }
        return text
    }

    func token(_ name: String) throws(RequestBodyError) -> Secret? {
        guard let text = try string(name) else { return nil }
        guard Token.isWellFormed(text) else { throw .invalid(name, mustBe: "a token of visible ASCII") }
        return Secret(text)
    }

    /// Returns a number of seconds, from a number or a string of digits.
    func seconds(_ name: String) throws(RequestBodyError) -> Duration? {
        let digits: String
        switch members[name] {
        case nil, .null, .string(""): return nil
        case .number(let text), .string(let text): digits = text
        default: throw .invalid(name, mustBe: "a number of seconds")
        }
        guard let seconds = Double(digits), (0...Self.maxSeconds).contains(seconds) else {
            throw .invalid(name, mustBe: "a number of seconds, at most ten years")
        }
        return .seconds(Int64(seconds))
    }

    /// Returns scopes separated by single spaces, from an array or from a text with spaces or commas.
    func scopes(_ name: String) throws(RequestBodyError) -> String? {
        let texts: [String]
        switch members[name] {
        case nil, .null: return nil
        case .string(let text): texts = [text]
        case .array(let values):
            texts = values.compactMap(\.string)
            guard texts.count == values.count else { throw .invalid(name, mustBe: "a list of texts") }
        default: throw .invalid(name, mustBe: "a list of texts, or one text with spaces between")
        }
        let scope = texts.flatMap { $0.split { $0 == " " || $0 == "," } }.joined(separator: " ")
        guard scope.utf8.count <= Self.longestScope, scope.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
            throw .invalid(name, mustBe: "a list of scopes in visible ASCII")
        }
        return scope.isEmpty ? nil : scope
    }

    private func string(_ name: String) throws(RequestBodyError) -> String? {
        switch members[name] {
        case nil, .null: return nil
        case .string(let text): return text.isEmpty ? nil : text
        default: throw .invalid(name, mustBe: "a text")
        }
    }
}

/// The reason why a request's body is refused; it never contains parts of the body.
enum RequestBodyError: Error, Hashable, Sendable {
    /// The request does not have a body and does not declare one.
    case undeclared
    case unsupportedMediaType
    /// The content does not match its media type.
    case unreadable
    /// A required field that is missing.
    case missing(String)
    /// A field with an invalid value, and the requirement, such as "a number of seconds".
    case invalid(String, mustBe: String)
}

/// The id of a user in the claims of a token.
struct UserIdentifier {
    static let maxLength = 255

    let text: String

    /// Reads the user from `sub`, or from `user_id`, which PayPulse's login uses.
    init(_ claims: JSONValue) throws(AuthenticationRefusal) {
        let subject = try Self.identifier(claims["sub"])
        let user = try Self.identifier(claims["user_id"])
        // Compared by bytes, as the store compares ids.
        guard let userID = subject ?? user, user.map({ $0.utf8.elementsEqual(userID.utf8) }) ?? true else {
            throw .invalid
        }
        text = userID
    }

    /// Returns a user's id; `nil` if there is none.
    ///
    /// A number is refused: `42`, `42.0` and `"42"` could be one user for the worker, and two for the login that signed
    /// the token.
    private static func identifier(_ value: JSONValue?) throws(AuthenticationRefusal) -> String? {
        switch value {
        case nil, .null: return nil
        case .string(let text):
            guard isWellFormed(text) else { throw .invalid }
            return text
        default: throw .invalid
        }
    }

    static func isWellFormed(_ text: String) -> Bool {
        (1...maxLength).contains(text.utf8.count)
            && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

extension UserIdentifier {
    /// Returns a new user's id: the text of a random UUID (RFC 9562, section 5.4).
    static func random(from source: any RandomSource) -> String {
        let high = source.nextBits() & ~0xf000 | 0x4000
        let low = source.nextBits() & ~(0b11 << 62) | (0b10 << 62)
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
