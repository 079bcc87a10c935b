internal import Base

/// A JSON value whose objects keep the order of their members, as Google's answers do.
enum OrderedJSON: Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([OrderedJSON])
    case object([Member])

    struct Member: Equatable, Sendable {
        let name: String
        let value: OrderedJSON
    }

    /// Parses a text, and returns `nil` if it is not JSON.
    ///
    /// The members of parsed objects are sorted by name.
    static func parsed(_ text: [UInt8]) -> OrderedJSON? {
        do {
            return OrderedJSON(try JSONValue.parse(text))
        } catch {
            return nil
        }
    }

    private init(_ value: JSONValue) {
        switch value {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .number(let text): self = value.integer.map(OrderedJSON.integer) ?? .number(Double(text) ?? .nan)
        case .string(let text): self = .string(text)
        case .array(let values): self = .array(values.map { OrderedJSON($0) })
        case .object(let members):
            self = .object(
                members.sorted { $0.key < $1.key }.map { Member(name: $0.key, value: OrderedJSON($0.value)) }
            )
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
        var bytes: [UInt8] = []
        bytes.append(jsonString: value)
        text += String(decoding: bytes, as: UTF8.self)
    }
}

extension OrderedJSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
    init(dictionaryLiteral elements: (String, OrderedJSON)...) {
        self = .object(elements.map { Member(name: $0.0, value: $0.1) })
    }

    init(arrayLiteral elements: OrderedJSON...) { self = .array(elements) }
    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int64) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension OrderedJSON {
    subscript(_ name: String) -> OrderedJSON? {
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

    /// Makes a whole number from a count.
    static func count(_ value: Int) -> OrderedJSON { .integer(Int64(value)) }
}
