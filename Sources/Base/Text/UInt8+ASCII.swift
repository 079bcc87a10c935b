extension UInt8 {
    /// This byte, or the small letter if it is a capital letter of ASCII.
    @inlinable package var asciiLowercased: UInt8 { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self ? self | 0x20 : self }

    @inlinable package var isASCIILetterOrDigit: Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= self | 0x20 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= self
    }
}

extension BidirectionalCollection<UInt8> {
    /// The text without the blanks and carriage returns at both ends.
    package var trimmingBlanks: SubSequence {
        let isText = { (byte: UInt8) in byte != 0x20 && byte != 0x09 && byte != 0x0d }
        guard let first = firstIndex(where: isText), let last = lastIndex(where: isText) else { return prefix(0) }
        return self[first...last]
    }
}
