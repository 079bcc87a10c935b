package import Base
private import CCrypto

/// A key of the ring: 256 random bits and an id.
package struct SealingKey: Sendable {
    package enum Role: Hashable, Sendable {
        /// Opens.
        ///
        /// It also seals if it is the first active key of the ring.
        case active
        /// Opens but does not seal yet, because other workers may not have read it.
        case pending
        /// Opens but never seals again. It stays because results that it sealed may still wait to be stored.
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
    static func random(isPending: Bool = false) throws(SealError) -> SealingKey {
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
    /// Copies a word of the expected length, and returns an empty array otherwise, so that a key in the wrong position
    /// is not copied.
    fileprivate func bytes(in range: Range<Int>, ifCount count: Int) -> [UInt8] {
        guard range.count == count else { return [] }
        var bytes: [UInt8] = []
        for offset in range { bytes.append(byte(at: offset)) }
        return bytes
    }
}

/// HKDF with SHA-256 (RFC 5869), to derive one key for each purpose from one secret.
struct KeyDerivation: Sendable {
    /// The length of a derived key: one block of the expansion, so that a key costs one HMAC.
    static let keyLength = MessageKey.codeLength

    /// The pseudorandom key of RFC 5869, section 2.2.
    private let key: MessageKey

    /// Extracts the pseudorandom key.
    ///
    /// The salt separates the uses of one secret. It does not have to be secret.
    init(from secret: Secret, salt: [UInt8]) {
        let extractor = MessageKey(Secret(utf8: salt))
        key = MessageKey(
            Secret(capacity: Self.keyLength) { buffer in
                secret.withBytes { extractor.authenticate($0, into: &buffer) }
                return Self.keyLength
            }
        )
    }

    /// Calls the closure with the key for one purpose, and wipes the key afterwards.
    func withKey<Result: ~Copyable, Failure: Error>(
        for purpose: consuming [UInt8],
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var block = InlineArray<32, UInt8>(repeating: 0)
        var span = block.mutableSpan
        var buffer = unsafe span.mutableBytes
        defer { LibCrypto.wipe(&buffer) }
        // The counter of the first and only block ends the message (section 2.3).
        var message = purpose
        message.append(1)
        unsafe key.authenticate(message.span.bytes, into: &buffer)
        return try body(buffer.bytes)
    }
}

/// The id of a sealing key: eight random lowercase hexadecimal digits.
///
/// It is not part of the key.
package struct KeyID: Hashable, Comparable, Sendable, CustomStringConvertible {
    static let length = 8

    private let number: UInt32

    private init(number: UInt32) {
        self.number = number
    }

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

    static func random() throws(SealError) -> KeyID {
        var number: UInt32 = 0
        try unsafe withUnsafeMutableBytes(of: &number) { (bytes) throws(SealError) in
            var buffer = unsafe bytes.mutableBytes
            try LibCrypto.fillRandomly(&buffer, in: 0..<buffer.byteCount)
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

/// A secret as stored in the database.
///
/// | bytes | content |
/// |---|---|
/// | 1 | version, 2 |
/// | 1 | length of the key id, 8 |
/// | 8 | key id, in ASCII |
/// | 12 | nonce |
/// | any | ciphertext, as long as the secret |
/// | 16 | tag |
///
/// It is AES-256-GCM with a key that is derived from the ring's key for the row and column of the value.
package struct SealedSecret: Hashable, Sendable {
    /// The offsets of the parts in a value of a given length.
    struct Layout {
        static let keyID = 2..<2 + KeyID.length
        static let minimumByteCount = keyID.upperBound + CipherContext.nonceLength + CipherContext.tagLength

        let nonce: Range<Int>
        let ciphertext: Range<Int>
        let tag: Range<Int>

        init(byteCount: Int) {
            nonce = Self.keyID.upperBound..<Self.keyID.upperBound + CipherContext.nonceLength
            tag = byteCount - CipherContext.tagLength..<byteCount
            ciphertext = nonce.upperBound..<tag.lowerBound
        }
    }

    static let version: UInt8 = 2

    package let bytes: [UInt8]
    /// The id of the sealing key according to the value.
    ///
    /// Only opening it proves the id.
    package let keyID: KeyID

    /// Checks that the bytes have the form of a sealed value.
    ///
    /// Only opening it shows if it is intact.
    package init(bytes: [UInt8]) throws(SealError) {
        guard
            bytes.count >= Layout.minimumByteCount,
            bytes[0] == Self.version, bytes[1] == UInt8(KeyID.length),
            let keyID = KeyID(ascii: bytes[Layout.keyID])
        else { throw .malformed }
        self.bytes = bytes
        self.keyID = keyID
    }
}

extension SealedSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "sealed by \(keyID), \(bytes.count) bytes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The row and column that a sealed value belongs to.
///
/// A value is refused in any other row or column. An attacker with write access to the database therefore
/// cannot move one user's token into another user's row.
package struct SealContext: Hashable, Sendable {
    /// The immutable id of the row.
    let owner: [UInt8]
    let column: String

    /// Makes the context of a row.
    ///
    /// All ids in one column of a table must have the same length.
    package init(owner: [UInt8], column: String) {
        self.owner = owner
        self.column = column
    }

    package init(owner: Int64, column: String) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8)
        for shift in stride(from: 56 as Int64, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: owner >> shift))
        }
        self.init(owner: bytes, column: column)
    }

    /// The HKDF purpose from which the key of this row and column is derived.
    ///
    /// Up to 54 bytes of it fit into one block of the hash.
    var derivationPurpose: [UInt8] {
        var bytes: [UInt8] = []
        // With one more byte for the counter of the derivation.
        bytes.reserveCapacity(2 + owner.count + column.utf8.count)
        bytes.append(UInt8(owner.count))
        bytes.append(contentsOf: owner)
        bytes.append(contentsOf: column.utf8)
        return bytes
    }
}

/// The reason why a secret could not be sealed or opened.
///
/// No case holds any part of the secret.
package enum SealError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The key ring lacks the key that sealed the value.
    case unknownKey(KeyID)
    /// The value was altered, belongs to another row or column, or was sealed by another key of the same id.
    case damaged(KeyID)
    /// The bytes do not have the form of a sealed value.
    case malformed
    /// An OpenSSL call failed that should succeed.
    ///
    /// The code comes from its error queue.
    case libraryFailure(call: String, code: UInt)

    package var description: String {
        switch self {
        case .unknownKey(let id): "the key ring has no key \(id)"
        case .damaged(let id): "the value sealed by key \(id) is damaged, or belongs to another row or another key"
        case .malformed: "the bytes are not a sealed value"
        case .libraryFailure(let call, let code): "OpenSSL's \(call) failed (error 0x\(String(code, radix: 16)))"
        }
    }
}
