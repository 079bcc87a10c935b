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

    /// Parses a text, and returns `nil` if it is not JSON. The members of parsed objects are sorted by name.
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

/// In a literal, a member without a value is left out.
extension OrderedJSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
    init(dictionaryLiteral elements: (String, OrderedJSON?)...) {
        self = .object(elements.compactMap { name, value in value.map { Member(name: name, value: $0) } })
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

/// An invalid control request or command line, with a message for the client.
struct ControlError: Error {
    let message: String
    let status: Int

    init(_ message: String, status: Int = 400) {
        self.message = message
        self.status = status
    }
}

/// Readers of control requests. Their errors name the invalid field.
extension OrderedJSON {
    func members(of name: String) throws(ControlError) -> [(name: String, value: OrderedJSON)] {
        guard case .object(let members) = self else { throw ControlError("\(name) must be a JSON object") }
        return members.map { ($0.name, $0.value) }
    }

    func integer(_ name: String) throws(ControlError) -> Int64 {
        try Self.require(integerValue, named: name, as: "a whole number")
    }

    /// Reads a whole number from 0 to 1,000,000,000.
    func count(_ name: String) throws(ControlError) -> Int64 {
        let value = integerValue.flatMap { (0...1_000_000_000).contains($0) ? $0 : nil }
        return try Self.require(value, named: name, as: "a whole number from 0 to 1000000000")
    }

    func fraction(_ name: String) throws(ControlError) -> Double {
        let value = numberValue.flatMap { (0...1).contains($0) ? $0 : nil }
        return try Self.require(value, named: name, as: "a number from 0 to 1")
    }

    func bool(_ name: String) throws(ControlError) -> Bool {
        try Self.require(boolValue, named: name, as: "true or false")
    }

    func string(_ name: String) throws(ControlError) -> String {
        try Self.require(stringValue, named: name, as: "a string")
    }

    func array(_ name: String) throws(ControlError) -> [OrderedJSON] {
        guard case .array(let values) = self else { throw ControlError("\(name) must be an array") }
        return values
    }

    private static func require<Value>(_ value: Value?, named name: String, as kind: String) throws(ControlError)
        -> Value
    {
        guard let value else { throw ControlError("\(name) must be \(kind)") }
        return value
    }

    /// Reads a fault: its name, {"preset": name}, or the answer as {"status", "body", "headers"}. The caller reads
    /// "times".
    func fault(_ name: String) throws(ControlError) -> SandboxFault {
        if let preset = stringValue ?? self["preset"]?.stringValue {
            guard let fault = SandboxFault(named: preset) else {
                throw ControlError("\(name): no fault is called \(preset); GET /control/faults lists them")
            }
            return fault
        }
        var status: Int64?
        var body: [UInt8] = []
        var headers: [FixedAnswer.Header] = []
        for (field, value) in try members(of: name) {
            switch field {
            case "status": status = try value.integer("\(name).status")
            case "body": body = Array((value.stringValue ?? value.text).utf8)
            case "headers":
                for (header, text) in try value.members(of: "\(name).headers") {
                    headers.append(.init(name: header, value: try text.string("\(name).headers.\(header)")))
                }
            case "times": break
            default: throw ControlError("\(name): unknown field \(field)")
            }
        }
        guard let status, (200...599).contains(status) else {
            throw ControlError("\(name).status must be from 200 to 599")
        }
        let type = headers.first { $0.name.lowercased() == "content-type" }?.value
        headers.removeAll { $0.name.lowercased() == "content-type" }
        return .answer(FixedAnswer(Int(status), contentType: type, headers: headers, body: body))
    }
}

extension [OrderedJSON] {
    func strings(_ name: String) throws(ControlError) -> [String] {
        var strings: [String] = []
        for value in self { strings.append(try value.string(name)) }
        return strings
    }
}
