extension JSONValue {
    /// The maximum nesting of arrays and objects, so that untrusted text cannot exhaust the stack.
    static let maximumDepth = 32

    /// Parses a whole text.
    ///
    /// Text after the value is an error.
    ///
    /// A byte-order mark before it is ignored (RFC 8259, section 8.1). If members have the same name, the last one
    /// counts.
    package static func parse(_ text: some Collection<UInt8>) throws(FormatError) -> JSONValue {
        var parser = JSONParser(bytes: Array(text))
        return try parser.parseDocument()
    }

    /// Parses an object, and returns `nil` for any other text or value.
    package static func object(in text: some Collection<UInt8>) -> JSONValue? {
        guard case .success(let value) = Result(catching: { () throws(FormatError) in try parse(text) }),
            value.object != nil
        else { return nil }
        return value
    }

    /// Returns the complete members of an object up to the first error in its structure, or `nil` if the text does not
    /// begin with an object.
    ///
    /// It is for a value that must not be lost together with the rest of its text. A value that cannot be read is
    /// omitted, if it is certain where it ends: it is nested too deeply, for example. Values that can be truncated are
    /// omitted too: a number counts only if another character follows it.
    package static func partialObject(in text: some Collection<UInt8>) -> JSONValue? {
        var parser = JSONParser(bytes: Array(text))
        return parser.parsePartialObject().map(JSONValue.object)
    }
}
