extension [UInt8] {
    /// Appends a quoted JSON string (RFC 8259, section 7).
    package mutating func append(jsonString value: String) {
        if !append(plainJSONString: value) { append(escapedJSONString: value) }
    }

    /// Appends the string and returns `true` if it needs no escapes, as nearly all. Otherwise it appends nothing.
    ///
    /// One loop costs less than a check and a copy, because most strings are short.
    private mutating func append(plainJSONString value: String) -> Bool {
        let bytes = value.utf8Span.span
        let length = count
        append(addingCapacity: bytes.count + 2) { output in
            output.append(UInt8(ascii: "\""))
            for index in bytes.indices {
                guard bytes[index].isPlainInJSON else { return output.removeAll() }
                output.append(bytes[index])
            }
            output.append(UInt8(ascii: "\""))
        }
        return count > length
    }

    private mutating func append(escapedJSONString value: String) {
        append(UInt8(ascii: "\""))
        for scalar in value.unicodeScalars { append(jsonScalar: scalar) }
        append(UInt8(ascii: "\""))
    }

    /// Appends a whole number.
    mutating func append(jsonInteger value: some FixedWidthInteger) {
        guard let small = UInt32(exactly: value) else { return append(contentsOf: value.description.utf8) }
        var divisor: UInt32 = 1
        while small / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: small / divisor % 10))
            divisor /= 10
        }
    }

    /// Appends a number, or `null` if JSON cannot represent it.
    mutating func append(jsonNumber value: Double) {
        append(contentsOf: (value.isFinite ? value.description : "null").utf8)
    }

    private mutating func append(jsonScalar scalar: Unicode.Scalar) {
        switch scalar {
        case "\"": append(contentsOf: #"\""#.utf8)
        case "\\": append(contentsOf: #"\\"#.utf8)
        case "\n": append(contentsOf: #"\n"#.utf8)
        case "\r": append(contentsOf: #"\r"#.utf8)
        case "\t": append(contentsOf: #"\t"#.utf8)
        case _ where scalar.disturbsTerminals:
            // All of them are in the basic plane, so four digits are enough.
            let digits = String(scalar.value, radix: 16)
            append(contentsOf: "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8)
        default: append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        }
    }
}
