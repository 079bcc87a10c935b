extension [UInt8] {
    /// Appends a quoted JSON string (RFC 8259, section 7).
    package mutating func append(jsonString value: String) {
        append(UInt8(ascii: "\""))
        let bytes = value.utf8Span.span
        var index = 0
        // Nearly all strings end here. This loop costs less than a check and a copy, because most are short.
        while index < bytes.count, bytes[index].isPlainInJSON {
            append(bytes[index])
            index += 1
        }
        if index < bytes.count {
            removeLast(index)
            for scalar in value.unicodeScalars { append(jsonScalar: scalar) }
        }
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
