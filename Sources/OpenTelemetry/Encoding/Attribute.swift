internal import Base

/// A name and a value of a resource, a data point or a span.
package struct Attribute: Equatable, Sendable {
    package enum Value: Equatable, Sendable {
        case text(String)
        case number(Int)
        case flag(Bool)
    }

    package let name: String
    package let value: Value

    package init(_ name: String, _ value: Value) {
        self.name = name
        self.value = value
    }
}

/// The forms of OTLP's JSON, in which a number of 64 bits is a string
/// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
extension JSONLine {
    mutating func attributes(_ attributes: [Attribute]) {
        guard !attributes.isEmpty else { return }
        objects("attributes", attributes) { attribute, line in
            line.field("key", attribute.name)
            line.object("value") { value in
                switch attribute.value {
                case .text(let text): value.text("stringValue", text, limit: Resource.maximumValue)
                case .number(let number): value.longInteger("intValue", number)
                case .flag(let flag): value.field("boolValue", flag)
                }
            }
        }
    }

    mutating func longInteger(_ key: String, _ value: some FixedWidthInteger) {
        field(key, value.description)
    }

    /// Writes an instant, of which OTLP wants nanoseconds since 1970.
    mutating func instant(_ key: String, _ instant: Timestamp) {
        let milliseconds = min(UInt64(clamping: instant.milliseconds), .max / 1_000_000)
        longInteger(key, milliseconds * 1_000_000)
    }
}
