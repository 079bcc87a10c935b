extension StringProtocol {
    /// `true` for 1 to 64 lower-case ASCII letters, digits and underscores: such a code is safe to log and to store.
    package var isLowerCaseCode: Bool {
        (1...64).contains(utf8.count)
            && utf8.allSatisfy { $0.isASCIILetterOrDigit && $0.asciiLowercased == $0 || $0 == UInt8(ascii: "_") }
    }

    /// `true` for 1 to 64 ASCII letters, digits, dots, underscores and hyphens: such an id is safe to log and to store.
    package var isPlainID: Bool {
        (1...64).contains(utf8.count)
            && utf8.allSatisfy { $0.isASCIILetterOrDigit || "._-".utf8.contains($0) }
    }

    /// `true` for one or more ASCII digits, without a sign or a blank.
    @inlinable package var isDecimalNumber: Bool {
        !isEmpty && utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
