internal import Base
internal import Crypto
internal import GoogleOAuth
internal import HTTPServer

/// The body of a request as named values, from JSON or a form.
///
///     let body = try RequestBody(request)
///     let token = try body.required("access_token")  // throws AppError.missingField
///     let nonce = try body.text("nonce")             // nil without one
///
/// `null` and an empty text count as a missing member.
struct RequestBody: Sendable {
    private static let maximumText = 1024
    private static let maximumScope = 16_384
    /// Ten years: longer than any lifetime.
    private static let maximumSeconds: Double = 315_360_000

    private let members: [String: JSONValue]

    /// Reads an object from JSON, or the fields of a form if they are allowed.
    init(_ request: ServerRequest, allowsForm: Bool = false) throws(AppError) {
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

    func text(_ name: String, limit: Int = maximumText) throws(AppError) -> String? {
        guard let text = try string(name) else { return nil }
        guard text.utf8.count <= limit else { throw .invalidField(name, mustBe: "shorter") }
        return text
    }

    /// Returns a required token, whose form the caller checks.
    func required(_ name: String) throws(AppError) -> String {
        guard let text = try string(name) else { throw .missingField(name) }
        return text
    }

    func token(_ name: String, limit: Int = Token.maximumLength) throws(AppError) -> Secret? {
        guard let text = try string(name) else { return nil }
        guard Token.isWellFormed(text) else { throw .invalidField(name, mustBe: "a token of visible ASCII") }
        guard text.utf8.count <= limit else { throw .invalidField(name, mustBe: "shorter") }
        return Secret(text)
    }

    /// Returns a number of seconds, from a number or a string of digits.
    func seconds(_ name: String) throws(AppError) -> Duration? {
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
    func scopes(_ name: String) throws(AppError) -> String? {
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

    private func string(_ name: String) throws(AppError) -> String? {
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
