import Clocks
import GoogleOAuth
import JSON
import Secrets

/// The members of a grant's JSON, read one by one: a missing member, `null` and an empty text all mean "not known".
struct GrantFields {
    /// Longer than any name, address or id that means something.
    static let textLimit = 1024
    private static let longestScope = 16_384
    private static let longestLifetime: Int64 = 3_660 * 86_400
    /// The end of the year 9999.
    private static let latestInstant = 253_402_300_799.0

    private let members: [String: JSONValue]

    init(_ members: [String: JSONValue]) {
        self.members = members
    }

    func text(_ name: String, limit: Int = textLimit) throws(ImportProblem) -> String? {
        switch members[name] {
        case nil, .null: return nil
        case .string(let text):
            guard text.utf8.count <= limit else {
                throw ImportProblem("\(name) has \(text.utf8.count) bytes; at most \(limit) are allowed")
            }
            return text.isEmpty ? nil : text
        default: throw ImportProblem("\(name) is not a text")
        }
    }

    /// An identifier, which some systems write as a number.
    func identifier(_ name: String) throws(ImportProblem) -> String? {
        if case .number(let digits) = members[name] {
            guard (1...30).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw ImportProblem("\(name) is neither a text nor a whole number")
            }
            return digits
        }
        return try text(name)
    }

    func token(_ name: String) throws(ImportProblem) -> Secret? {
        let token = Token.optional(members[name])
        guard token.isWellFormed else {
            throw ImportProblem("\(name) is not a token: visible ASCII of at most \(Token.greatestLength) bytes")
        }
        return token.value
    }

    /// ISO 8601, or seconds since 1970.
    func instant(_ name: String) throws(ImportProblem) -> Timestamp? {
        switch members[name] {
        case nil, .null, .string(""): return nil
        case .string(let text):
            guard let instant = Timestamp(iso8601: text) else {
                throw ImportProblem("\(name) is not a time such as 2026-01-31T12:00:00Z")
            }
            return instant
        case .number(let digits):
            guard let seconds = Double(digits), (0...Self.latestInstant).contains(seconds) else {
                throw ImportProblem("\(name) is out of range; a number counts the seconds since 1970")
            }
            return Timestamp(milliseconds: Int64((seconds * 1000).rounded()))
        default: throw ImportProblem("\(name) is neither a time nor a number of seconds")
        }
    }

    /// A number of seconds, as a number or as its digits.
    func span(_ name: String) throws(ImportProblem) -> Duration? {
        let digits: String
        switch members[name] {
        case nil, .null, .string(""): return nil
        case .number(let text), .string(let text): digits = text
        default: throw ImportProblem("\(name) is not a number of seconds")
        }
        guard let seconds = Double(digits), seconds.isFinite else {
            throw ImportProblem("\(name) is not a number of seconds")
        }
        guard (0...Double(Self.longestLifetime)).contains(seconds) else {
            throw ImportProblem("\(name) is out of range; at most ten years of seconds are allowed")
        }
        return .seconds(Int64(seconds))
    }

    func boolean(_ name: String) throws(ImportProblem) -> Bool? {
        switch members[name] {
        case nil, .null, .string(""): return nil
        case .bool(let value): return value
        case .string("true"), .string("True"): return true
        case .string("false"), .string("False"): return false
        default: throw ImportProblem("\(name) is neither true nor false")
        }
    }

    /// Scopes with a space between, from an array or from a text with spaces or commas between.
    func scopes(_ name: String) throws(ImportProblem) -> String? {
        var words: [Substring] = []
        switch members[name] {
        case nil, .null: return nil
        case .string(let text):
            words = text.split { $0 == " " || $0 == "," }
        case .array(let values):
            for value in values {
                guard let text = value.string else { throw ImportProblem("\(name) holds something that is not a text") }
                words += text.split { $0 == " " || $0 == "," }
            }
        default: throw ImportProblem("\(name) is neither a text nor an array of texts")
        }
        let scope = words.joined(separator: " ")
        guard scope.utf8.allSatisfy({ (0x20...0x7e).contains($0) }), scope.utf8.count <= Self.longestScope else {
            throw ImportProblem("\(name) is not a list of scopes: visible ASCII of at most \(Self.longestScope) bytes")
        }
        return scope.isEmpty ? nil : scope
    }
}
