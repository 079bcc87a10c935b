/// A JSON object on one line, written field by field in order.
///
/// The result never has a line break or a character that could move a terminal's cursor, whatever the values hold. It
/// is valid UTF-8 because Swift's strings are.
package struct JSONLine: Sendable {
    /// Enough for most lines, so that they are not copied as they grow.
    private static let usualCapacity = 512

    private var output: [UInt8]
    private var isFirst = true

    package init() {
        output = []
        output.reserveCapacity(Self.usualCapacity)
        output.append(UInt8(ascii: "{"))
    }

    /// The length so far in bytes, without the closing brace.
    package var length: Int { output.count }

    /// Removes the fields after this length, which ``length`` had between two fields.
    package mutating func removeFields(after length: Int) {
        output.removeLast(output.count - length)
        isFirst = length == 1  // only the opening brace
    }

    /// The complete object, without a line break at its end.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(output.count + 1)
        append(to: &bytes)
        return bytes
    }

    /// Appends the complete object, without a line break at its end.
    package func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: output)
        bytes.append(UInt8(ascii: "}"))
    }

    /// The complete object as text.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package mutating func field(_ key: String, _ value: String) {
        open(key)
        output.append(jsonString: value)
    }

    // Not generic: the compiler does not specialise a generic function for another module, and this takes a third of
    // it.

    package mutating func field(_ key: String, _ value: Int) {
        open(key)
        output.append(jsonInteger: value)
    }

    package mutating func field(_ key: String, _ value: Int64) {
        open(key)
        output.append(jsonInteger: value)
    }

    /// Writes a number.
    ///
    /// JSON cannot represent infinity and NaN, so they become `null`.
    package mutating func field(_ key: String, _ value: Double) {
        open(key)
        output.append(jsonNumber: value)
    }

    package mutating func field(_ key: String, _ value: Bool) {
        open(key)
        output.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// Writes sixteen hexadecimal digits, as a string.
    package mutating func hexadecimal(_ key: String, _ value: UInt64) {
        open(key)
        output.append(UInt8(ascii: "\""))
        output.append(hexadecimal: value, digits: 16)
        output.append(UInt8(ascii: "\""))
    }

    /// Writes a duration in whole milliseconds.
    package mutating func milliseconds(_ key: String, _ value: Duration) {
        field(key, value.wholeMilliseconds)
    }

    package mutating func null(_ key: String) {
        open(key)
        output.append(contentsOf: "null".utf8)
    }

    /// Writes a value, or `null` for `nil`.
    package mutating func fieldOrNull(_ key: String, _ value: String?) {
        if let value { field(key, value) } else { null(key) }
    }

    package mutating func fieldOrNull(_ key: String, _ value: Int?) {
        if let value { field(key, value) } else { null(key) }
    }

    package mutating func fieldOrNull(_ key: String, _ value: Bool?) {
        if let value { field(key, value) } else { null(key) }
    }

    package mutating func millisecondsOrNull(_ key: String, _ value: Duration?) {
        if let value { milliseconds(key, value) } else { null(key) }
    }

    /// Writes a string, shortened to at most `limit` bytes (see ``Swift/String/capped(at:)``).
    package mutating func text(_ key: String, _ value: String, limit: Int) {
        field(key, value.capped(at: limit))
    }

    /// Writes a nested object, whose fields `body` adds.
    package mutating func object(_ key: String, _ body: (inout JSONLine) throws -> Void) rethrows {
        open(key)
        var nested = JSONLine()
        try body(&nested)
        nested.append(to: &output)
    }

    /// Writes a nested array, whose elements `body` adds.
    package mutating func array(_ key: String, _ body: (inout JSONArray) throws -> Void) rethrows {
        open(key)
        var nested = JSONArray()
        try body(&nested)
        output.append(contentsOf: nested.bytes)
    }

    /// Writes an array of strings.
    package mutating func strings(_ key: String, _ values: some Sequence<String>) {
        array(key) { array in for value in values { array.element(value) } }
    }

    /// Writes an array of numbers.
    package mutating func numbers(_ key: String, _ values: some Sequence<Double>) {
        array(key) { array in for value in values { array.element(value) } }
    }

    /// Writes an array of objects, to each of which `body` adds its fields.
    package mutating func objects<Element>(
        _ key: String,
        _ elements: [Element],
        _ body: (Element, inout JSONLine) -> Void
    ) {
        array(key) { array in
            for element in elements { array.object { body(element, &$0) } }
        }
    }

    private mutating func open(_ key: String) {
        if !isFirst { output.append(UInt8(ascii: ",")) }
        isFirst = false
        output.append(jsonString: key)
        output.append(UInt8(ascii: ":"))
    }
}
