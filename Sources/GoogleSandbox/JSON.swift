internal import FoundationEssentials

/// A JSON value; an object keeps the order of its members, as Google's answers do.
enum JSON: Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([Member])

    struct Member: Equatable, Sendable {
        let name: String
        let value: JSON
    }

    /// Reads JSON text; an object's members come sorted by name.
    private init(parsing text: [UInt8]) throws {
        self = try JSONDecoder().decode(JSON.self, from: Data(text))
    }

    /// The value that the text holds, or nil if it is no JSON.
    static func parsed(_ text: [UInt8]) -> JSON? {
        do {
            return try JSON(parsing: text)
        } catch {
            return nil
        }
    }

    /// The value as JSON text.
    var text: String {
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .number(let value): text += value.isFinite ? String(value) : "null"
        case .string(let value): Self.write(value, to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.write(member.name, to: &text)
                text += ":"
                member.value.write(to: &text)
            }
            text += "}"
        }
    }

    private static func write(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\u{0}"..."\u{1F}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

extension JSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
    init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { Member(name: $0.0, value: $0.1) })
    }

    init(arrayLiteral elements: JSON...) { self = .array(elements) }
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int64) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension JSON: Decodable {
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        if let members = try Self.attempt({ try decoder.container(keyedBy: Name.self) }) {
            self = .object(
                try members.allKeys.sorted { $0.stringValue < $1.stringValue }.map {
                    Member(name: $0.stringValue, value: try members.decode(JSON.self, forKey: $0))
                }
            )
        } else if var values = try Self.attempt({ try decoder.unkeyedContainer() }) {
            var array: [JSON] = []
            while !values.isAtEnd { array.append(try values.decode(JSON.self)) }
            self = .array(array)
        } else {
            let value = try decoder.singleValueContainer()
            if value.decodeNil() {
                self = .null
            } else if let bool = try Self.attempt({ try value.decode(Bool.self) }) {
                self = .bool(bool)
            } else if let integer = try Self.attempt({ try value.decode(Int64.self) }) {
                self = .integer(integer)
            } else if let number = try Self.attempt({ try value.decode(Double.self) }) {
                self = .number(number)
            } else {
                self = .string(try value.decode(String.self))
            }
        }
    }

    /// The value, or nil where the text holds one of another type; a broken text is an error still.
    private static func attempt<Value>(_ decode: () throws -> Value) throws -> Value? {
        do {
            return try decode()
        } catch DecodingError.typeMismatch {
            return nil
        } catch DecodingError.dataCorrupted(let context) where context.underlyingError == nil {
            // A number that does not fit the type asked for.
            return nil
        }
    }
}

extension JSON {
    subscript(_ name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    var stringValue: String? { if case .string(let value) = self { value } else { nil } }
    var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
    var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }

    var numberValue: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// A whole number that may be counted with.
    static func count(_ value: Int) -> JSON { .integer(Int64(value)) }
}
