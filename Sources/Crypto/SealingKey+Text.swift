private import Base
private import CCrypto

/// The text form of a key in the ring's file: `<id> <base64 of its 32 bytes> [pending | retired <seconds since 1970>]`.
extension SealingKey {
    private static let base64Length = 44
    private static let pendingWord = Array("pending".utf8)
    private static let retiredWord = Array("retired".utf8)
    /// Seconds since 1970 have ten digits until the year 2286.
    private static let dateLength = 10

    /// The reason why a line is not a key.
    ///
    /// It never quotes the line.
    enum LineFault: String, Error {
        case wordCount = "the line is not: <id> <base64 key> [pending | retired <seconds since 1970>]"
        case id = "the key's id is not eight lowercase hexadecimal digits"
        case material = "the key is not the base64 of 32 bytes"
        case role = "only the word \"pending\", or \"retired\" and seconds since 1970, may follow the key"
    }

    /// Reads a key from the words of a line, given as ranges.
    init(words: [Range<Int>], of line: RawSpan) throws(LineFault) {
        guard (2...4).contains(words.count) else { throw .wordCount }
        guard let id = KeyID(ascii: line.bytes(in: words[0], ifCount: KeyID.length)) else { throw .id }
        guard let material = Self.material(base64: line.extracting(words[1])) else { throw .material }
        self.init(id: id, material: material, role: try Self.role(of: words[2...], in: line))
    }

    private static func role(of words: ArraySlice<Range<Int>>, in line: RawSpan) throws(LineFault) -> Role {
        guard let word = words.first else { return .active }
        switch words.count {
        case 1:
            guard line.bytes(in: word, ifCount: pendingWord.count) == pendingWord else { throw .role }
            return .pending
        default:
            let date = line.bytes(in: words[words.startIndex + 1], ifCount: dateLength)
            let digits = String(decoding: date, as: UTF8.self)
            guard line.bytes(in: word, ifCount: retiredWord.count) == retiredWord, digits.isDecimalNumber,
                let seconds = Int64(digits)
            else { throw .role }
            return .retired(since: Timestamp(secondsSince1970: seconds))
        }
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
    /// Copies a word of the expected length; returns an empty array otherwise, so that a key in the wrong
    /// position is not copied.
    fileprivate func bytes(in range: Range<Int>, ifCount count: Int) -> [UInt8] {
        guard range.count == count else { return [] }
        var bytes: [UInt8] = []
        for offset in range { bytes.append(byte(at: offset)) }
        return bytes
    }
}
