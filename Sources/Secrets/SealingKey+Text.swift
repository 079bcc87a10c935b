private import CCrypto

/// How a key is written in the ring's file: `<id> <base64 of its 32 bytes> [pending]`.
extension SealingKey {
    private static let base64Length = 44
    private static let pendingMark = Array("pending".utf8)

    /// Why a line is not a key; it never quotes the line.
    enum LineFault: String, Error {
        case wordCount = "the line is not: <id> <base64 key> [pending]"
        case id = "the key's id is not eight lowercase hexadecimal digits"
        case material = "the key is not the base64 of 32 bytes"
        case mark = "only the word \"pending\" may follow the key"
    }

    /// Reads the words of a line, given as ranges of it.
    init(words: [Range<Int>], of line: RawSpan) throws(LineFault) {
        guard words.count == 2 || words.count == 3 else { throw .wordCount }
        guard let id = KeyID(ascii: line.bytes(in: words[0], ifCount: KeyID.length)) else { throw .id }
        guard let material = Self.material(base64: line.extracting(words[1])) else { throw .material }
        if words.count == 3 {
            guard line.bytes(in: words[2], ifCount: Self.pendingMark.count) == Self.pendingMark else { throw .mark }
        }
        self.init(id: id, material: material, isPending: words.count == 3)
    }

    /// The key's line, without a newline.
    var line: Secret {
        Secret(concatenating: [Secret("\(id) "), Self.base64(of: material), Secret(isPending ? " pending" : "")])
    }

    private static func base64(of material: Secret) -> Secret {
        // The library writes a zero behind the text.
        Secret(capacity: base64Length + 1) { room in
            unsafe room.withUnsafeMutableBytes { room in
                material.withBytes { span in
                    unsafe span.withUnsafeBytes { bytes in
                        let written = unsafe EVP_EncodeBlock(
                            room.assumingMemoryBound(to: UInt8.self).baseAddress,
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
        // The library counts the padding as a byte of its own, hence 33.
        let decodedLength = CipherContext.keyLength + 1
        let material = Secret(capacity: decodedLength) { room in
            unsafe room.withUnsafeMutableBytes { room in
                unsafe text.withUnsafeBytes { bytes in
                    let written = unsafe EVP_DecodeBlock(
                        room.assumingMemoryBound(to: UInt8.self).baseAddress,
                        bytes.assumingMemoryBound(to: UInt8.self).baseAddress,
                        Int32(bytes.count)
                    )
                    return Int(written) == decodedLength ? CipherContext.keyLength : 0
                }
            }
        }
        // The library is lenient about blanks, padding and stray bits: only the one right spelling is taken.
        guard material.count == CipherContext.keyLength, base64(of: material) == Secret(copying: text) else {
            return nil
        }
        return material
    }
}

extension RawSpan {
    /// A copy of a short word, or nothing when it has another length: what may be a misplaced key is not copied.
    fileprivate func bytes(in range: Range<Int>, ifCount count: Int) -> [UInt8] {
        guard range.count == count else { return [] }
        var bytes: [UInt8] = []
        for offset in range { bytes.append(byte(at: offset)) }
        return bytes
    }
}
