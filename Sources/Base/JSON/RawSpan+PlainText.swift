/// Checks of text that comes for every refresh: eight bytes at a time, a fifth of the instructions of a loop over bytes.
extension RawSpan {
    /// Returns the end of the text from `start` on that stands for itself in a JSON string: printable ASCII characters
    /// without quotation marks and backslashes.
    package func endOfPlainText(from start: Int) -> Int {
        var end = start
        while let word = word(at: end) {
            let marks =
                word.marks(below: 0x20) | word.marks(of: UInt8(ascii: "\"")) | word.marks(of: UInt8(ascii: "\\"))
                | word.marks(above: 0x7e)
            // The first byte of the text is the lowest one of the word.
            guard marks == 0 else { return end + marks.trailingZeroBitCount / 8 }
            end += EightBytes.count
        }
        while end < byteCount, byte(at: end).isPlainInJSON { end += 1 }
        return end
    }

    /// `true` if all bytes are visible ASCII characters, thus no blanks.
    package var isVisibleASCII: Bool {
        var offset = 0
        while let word = word(at: offset) {
            guard word.marks(below: 0x21) | word.marks(above: 0x7e) == 0 else { return false }
            offset += EightBytes.count
        }
        while offset < byteCount {
            guard 0x21...0x7e ~= byte(at: offset) else { return false }
            offset += 1
        }
        return true
    }

    /// Returns the eight bytes at an offset, or `nil` if there are fewer.
    private func word(at offset: Int) -> EightBytes? {
        guard offset + EightBytes.count <= byteCount else { return nil }
        let bits = unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
        return EightBytes(bits: UInt64(littleEndian: bits))
    }
}

/// Eight bytes in one register, the first one lowest.
///
/// Its functions mark bytes by their highest bit. The lowest mark is right. The bytes above it can be marked by mistake,
/// since borrows and carries run into them (https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord).
private struct EightBytes {
    static let count = 8
    private static let lowestBits: UInt64 = 0x0101_0101_0101_0101
    private static let highestBits: UInt64 = 0x8080_8080_8080_8080

    let bits: UInt64

    /// Marks bytes below a limit of at most 128.
    func marks(below limit: UInt8) -> UInt64 {
        (bits &- Self.lowestBits &* UInt64(limit)) & ~bits & Self.highestBits
    }

    /// Marks bytes above a limit of at most 127.
    func marks(above limit: UInt8) -> UInt64 {
        (bits &+ Self.lowestBits &* UInt64(127 - limit) | bits) & Self.highestBits
    }

    func marks(of byte: UInt8) -> UInt64 {
        EightBytes(bits: bits ^ Self.lowestBits &* UInt64(byte)).marks(below: 1)
    }
}

extension UInt8 {
    /// `true` for a printable ASCII character that needs no escape in a JSON string.
    var isPlainInJSON: Bool {
        self &- 0x20 < 0x5f && self != UInt8(ascii: "\"") && self != UInt8(ascii: "\\")
    }
}
