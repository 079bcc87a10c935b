/// Bytes as pairs of hexadecimal digits.
package enum Hexadecimal {
    /// Returns two lower-case digits for each byte.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0 & 15)] }, as: UTF8.self)
    }

    /// Returns the lower-case digit of a value below 16.
    fileprivate static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + (value - 10)
    }

    /// Decodes the text, and returns `nil` unless it is exactly the text that ``encode(_:)`` makes.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? { decode(text.utf8) }

    /// Decodes the digits of a text.
    package static func decode(_ digits: some Collection<UInt8>) -> [UInt8]? {
        // The same bytes in other letters would be a second name of one thing.
        let values = digits.compactMap(value(ofLowerCase:))
        guard values.count == digits.count, values.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
    }

    /// Returns the value of one digit in either case, or `nil` for any other byte.
    @inlinable
    package static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    @inlinable
    package static func value(ofLowerCase digit: UInt8) -> UInt8? {
        (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(digit) ? nil : value(of: digit)
    }
}

extension [UInt8] {
    /// Appends the lowest digits of a number, in lower case.
    package mutating func append(hexadecimal value: UInt64, digits: Int) {
        append(addingCapacity: digits) { output in
            for place in (0..<digits).reversed() {
                output.append(Hexadecimal.digit(UInt8(truncatingIfNeeded: value >> (4 * place)) & 15))
            }
        }
    }
}
