internal import Base

/// Reads the form of `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_EXPORTER_OTLP_HEADERS`: pairs like `name=value`, separated by
/// commas, with percent-encoded values (https://opentelemetry.io/docs/specs/otel/protocol/exporter).
enum KeyValueList {
    struct Pair: Equatable {
        let name: String
        let value: String
    }

    /// Reads all pairs, or throws if one of them is damaged.
    ///
    /// An error never repeats a value, because it can be a secret.
    static func parse(_ text: String) throws(FormatError) -> [Pair] {
        var pairs: [Pair] = []
        for member in text.split(separator: ",") {
            let member = member.utf8.trimmingBlanks
            guard !member.isEmpty else { continue }
            guard let separator = member.firstIndex(of: UInt8(ascii: "=")) else { throw Self.nameless }
            let name = String(decoding: member[..<separator].trimmingBlanks, as: UTF8.self)
            guard !name.isEmpty else { throw Self.nameless }
            let encoded = member[member.index(after: separator)...].trimmingBlanks
            guard let value = decoded(encoded) else {
                throw FormatError("the value of \(DisplayedText(name)) is not percent-encoded UTF-8")
            }
            pairs.append(Pair(name: name, value: value))
        }
        return pairs
    }

    private static let nameless = FormatError("a value has no name: name=value, separated by commas")

    private static func decoded(_ bytes: some Collection<UInt8>) -> String? {
        var decoded: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let first = rest.popFirst(), let second = rest.popFirst() else { return nil }
            guard let high = Hexadecimal.value(of: first), let low = Hexadecimal.value(of: second) else { return nil }
            decoded.append(high << 4 | low)
        }
        return String(validating: decoded, as: UTF8.self)
    }
}
