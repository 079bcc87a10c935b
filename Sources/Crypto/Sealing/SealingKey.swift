package import Base
private import CCrypto

/// A key of the ring: 256 random bits and an id.
package struct SealingKey: Sendable {
    package enum Role: Hashable, Sendable {
        /// Opens.
        ///
        /// It also seals if it is the first active key of the ring.
        case active
        /// Opens but does not seal yet, because other workers might not have read it.
        case pending
        /// Opens but never seals again. It stays because results that it sealed might still wait to be stored.
        case retired(since: Timestamp)
    }

    private static let salt = Array("refresh-worker sealed 2".utf8)

    package let id: KeyID
    package let role: Role

    let material: Secret
    /// Derives the key of each row and column.
    let derivation: KeyDerivation

    init(id: KeyID, material: Secret, role: Role) {
        precondition(material.count == CipherContext.keyLength)
        self.id = id
        self.material = material
        self.role = role
        derivation = KeyDerivation(from: material, salt: Self.salt)
    }

    /// Generates a key with a new id.
    static func random(isPending: Bool = false) throws(CryptoError) -> SealingKey {
        let material = try Secret.random(byteCount: CipherContext.keyLength)
        return SealingKey(id: try .random(), material: material, role: isPending ? .pending : .active)
    }
}

/// The text form of a key in the ring's file: `<id> <base64 of its 32 bytes> [pending | retired <seconds since 1970>]`.
extension SealingKey {
    private static let base64Length = 44
    private static let pendingWord = Array("pending".utf8)
    private static let retiredWord = Array("retired".utf8)
    /// Seconds since 1970 have ten digits until the year 2286.
    private static let dateLength = 10

    /// Reads a key from the words of a line, given as ranges.
    ///
    /// `malformed` makes the error, which never quotes the line.
    init(
        words: [Range<Int>],
        of line: RawSpan,
        malformed: (String) -> FileError
    ) throws(FileError) {
        guard (2...4).contains(words.count) else {
            throw malformed("the line is not: <id> <base64 key> [pending | retired <seconds since 1970>]")
        }
        guard let id = KeyID(ascii: line.bytes(in: words[0], ifCount: KeyID.length)) else {
            throw malformed("the key's id is not eight lowercase hexadecimal digits")
        }
        guard let material = Self.material(base64: line.extracting(words[1])) else {
            throw malformed("the key is not the base64 of 32 bytes")
        }
        guard let role = Self.role(of: words[2...], in: line) else {
            throw malformed("only the word \"pending\", or \"retired\" and seconds since 1970, may follow the key")
        }
        self.init(id: id, material: material, role: role)
    }

    private static func role(of words: ArraySlice<Range<Int>>, in line: RawSpan) -> Role? {
        guard let word = words.first else { return .active }
        guard words.count > 1 else {
            return line.bytes(in: word, ifCount: pendingWord.count) == pendingWord ? .pending : nil
        }
        let date = line.bytes(in: words[words.startIndex + 1], ifCount: dateLength)
        let digits = String(decoding: date, as: UTF8.self)
        guard line.bytes(in: word, ifCount: retiredWord.count) == retiredWord, digits.isDecimalNumber,
            let seconds = Int64(digits)
        else { return nil }
        return .retired(since: Timestamp(secondsSince1970: seconds))
    }

    private var roleText: String {
        switch role {
        case .active: ""
        case .pending: " pending"
        case .retired(let since): " retired \(since.milliseconds / 1000)"
        }
    }

    /// The line of the key, without a newline.
    var line: Secret {
        Secret(concatenating: [Secret("\(id) "), Self.base64(of: material), Secret(roleText)])
    }

    private static func base64(of material: Secret) -> Secret {
        // The library writes a zero byte after the text.
        Secret(capacity: base64Length + 1) { buffer in
            unsafe buffer.withUnsafeMutableBytes { buffer in
                material.withBytes { span in
                    unsafe span.withUnsafeBytes { bytes in
                        let written = unsafe EVP_EncodeBlock(
                            buffer.assumingMemoryBound(to: UInt8.self).baseAddress,
                            bytes.assumingMemoryBound(to: UInt8.self).baseAddress,
                            Int32(bytes.count)
                        )
                        return Int(written)
                    }
                }
            }
        }
    }

    private static func material(base64 text: RawSpan) -> Secret? {
        guard text.byteCount == base64Length else { return nil }
        // The library counts the padding as a byte, so the result has 33.
        let decodedLength = CipherContext.keyLength + 1
        let material = Secret(capacity: decodedLength) { buffer in
            unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe text.withUnsafeBytes { bytes in
                    let written = unsafe EVP_DecodeBlock(
                        buffer.assumingMemoryBound(to: UInt8.self).baseAddress,
                        bytes.assumingMemoryBound(to: UInt8.self).baseAddress,
                        Int32(bytes.count)
                    )
                    return Int(written) == decodedLength ? CipherContext.keyLength : 0
                }
            }
        }
        // The library tolerates blanks, padding and leftover bits. Only the canonical encoding is accepted.
        guard material.count == CipherContext.keyLength, base64(of: material) == Secret(copying: text) else {
            return nil
        }
        return material
    }
}

extension RawSpan {
    /// Copies a word of the expected length, and returns an empty array otherwise, so that a key in the wrong position
    /// is not copied.
    fileprivate func bytes(in range: Range<Int>, ifCount count: Int) -> [UInt8] {
        guard range.count == count else { return [] }
        var bytes: [UInt8] = []
        for offset in range { bytes.append(byte(at: offset)) }
        return bytes
    }
}

/// The id of a sealing key: eight random lowercase hexadecimal digits.
///
/// It is not part of the key.
package struct KeyID: Hashable, Comparable, Sendable, CustomStringConvertible {
    static let length = 8

    private let number: UInt32

    static func random() throws(CryptoError) -> KeyID {
        var number: UInt32 = 0
        try unsafe withUnsafeMutableBytes(of: &number) { (bytes) throws(CryptoError) in
            var buffer = unsafe bytes.mutableBytes
            try OpenSSL.fillRandomly(&buffer, in: 0..<buffer.byteCount)
        }
        return KeyID(number: number)
    }

    package static func < (left: KeyID, right: KeyID) -> Bool { left.number < right.number }

    package var description: String {
        var digits: [UInt8] = []
        appendDigits(to: &digits)
        return String(decoding: digits, as: UTF8.self)
    }

    /// Appends the bytes of ``description``.
    func appendDigits(to text: inout [UInt8]) {
        for shift in stride(from: 28, through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: number >> shift) & 0xf
            text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + (digit - 10))
        }
    }
}

extension KeyID {
    /// Reads an id, and returns `nil` unless the text is eight lowercase hexadecimal digits.
    package init?(_ text: String) {
        self.init(ascii: text.utf8)
    }

    init?(ascii digits: some Collection<UInt8>) {
        guard digits.count == Self.length else { return nil }
        // Each refresh reads two ids, so no array of bytes is made.
        var number: UInt32 = 0
        for digit in digits {
            guard let value = Hexadecimal.value(ofLowerCase: digit) else { return nil }
            number = number << 4 | UInt32(value)
        }
        self.init(number: number)
    }
}
