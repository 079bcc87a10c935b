import Base
private import CCrypto

/// The text form of a key in the ring's file:
/// `<id> <base64 of its 32 bytes> [binding] [pending | retired <seconds since 1970>]`. A binding key is never pending.
extension RingKey {
    private static let base64Length = 44
    private static let bindingWord = Array("binding".utf8)
    private static let pendingWord = Array("pending".utf8)
    private static let retiredWord = Array("retired".utf8)
    /// Seconds since 1970 have ten digits until the year 2286.
    private static let dateLength = 10

    /// Reads a key from the words of a line, given as ranges.
    ///
    /// `malformed` makes the error, which never quotes the line.
    init(words: [Range<Int>], of line: RawSpan, malformed: (String) -> FileError) throws(FileError) {
        let isBinding = words.count > 2 && line.bytes(in: words[2], ifCount: Self.bindingWord.count) == Self.bindingWord
        let wordsOfRole = words.dropFirst(isBinding ? 3 : 2)
        guard words.count >= 2, wordsOfRole.count <= 2 else {
            throw malformed("the line is not: <id> <base64 key> [binding] [pending | retired <seconds since 1970>]")
        }
        guard let id = KeyID(ascii: line.bytes(in: words[0], ifCount: KeyID.length)) else {
            throw malformed("the key's id is not eight lowercase hexadecimal digits")
        }
        guard let material = Self.material(base64: line.extracting(words[1])) else {
            throw malformed("the key is not the base64 of \(CipherContext.keyLength) bytes")
        }
        guard let role = Self.role(of: wordsOfRole, in: line) else {
            throw malformed("only the word \"pending\", or \"retired\" and seconds since 1970, can follow the key")
        }
        guard isBinding else {
            self.init(id: id, material: material, role: role)
            return
        }
        guard role != .pending else { throw malformed("a key with the word \"binding\" cannot be pending") }
        do throws(CryptoError) {
            try self.init(id: id, binding: material, role: role)
        } catch {
            throw malformed("the key with the word \"binding\" cannot be used, because \(error)")
        }
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
        Secret(
            concatenating: [
                Secret("\(id) "), Self.base64(of: material), Secret(isBinding ? " binding" : ""), Secret(roleText),
            ]
        )
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
        guard text.byteCount == base64Length, let material = Base64.decode(Secret(copying: text)),
            material.count == CipherContext.keyLength
        else { return nil }
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
