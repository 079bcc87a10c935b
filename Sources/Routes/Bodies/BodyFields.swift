internal import Base
internal import Crypto
internal import GoogleOAuth

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
