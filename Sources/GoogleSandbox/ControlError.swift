/// An invalid control request, with a message for the client.
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
        guard let value = integerValue else { throw ControlError("\(name) must be a whole number") }
        return value
    }

    /// Reads a whole number from 0 to 1,000,000,000.
    func count(_ name: String) throws(ControlError) -> Int64 {
        guard let value = integerValue, (0...1_000_000_000).contains(value) else {
            throw ControlError("\(name) must be a whole number from 0 to 1000000000")
        }
        return value
    }

    func fraction(_ name: String) throws(ControlError) -> Double {
        guard let value = numberValue, (0...1).contains(value) else {
            throw ControlError("\(name) must be a number from 0 to 1")
        }
        return value
    }

    func bool(_ name: String) throws(ControlError) -> Bool {
        guard let value = boolValue else { throw ControlError("\(name) must be true or false") }
        return value
    }

    func string(_ name: String) throws(ControlError) -> String {
        guard let value = stringValue else { throw ControlError("\(name) must be a string") }
        return value
    }

    func array(_ name: String) throws(ControlError) -> [OrderedJSON] {
        guard case .array(let values) = self else { throw ControlError("\(name) must be an array") }
        return values
    }

    /// Reads a fault: its name, {"preset": name}, or the answer as {"status", "body", "headers"}.
    ///
    /// The caller reads "times".
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
