package import Base
private import CCrypto

/// A key that computes and checks HMAC-SHA256 codes (RFC 2104).
///
/// Both hashes of an HMAC begin with a block that depends only on the key. Their states after it are computed once, so
/// that a short message costs two compressions.
package struct MessageKey: Sendable {
    static let codeLength = 32
    private static let blockLength = 64
    private static let stateLength = ccrypto_sha256_state_size()

    /// The states of the inner and the outer hash, which are as secret as the key.
    private let states: Secret

    package init(_ secret: Secret) {
        // Longer keys are hashed first, shorter ones are padded with zeroes.
        let isLong = secret.count > Self.blockLength
        let key = isLong ? Secret(utf8: Digest.sha256(secret.bytes)) : secret
        states = Secret(capacity: 2 * Self.stateLength) { buffer in
            key.withBytes { key in
                Self.begin(&buffer, index: 0, key: key, pad: 0x36)
                Self.begin(&buffer, index: 1, key: key, pad: 0x5c)
            }
            return buffer.byteCount
        }
    }

    /// Computes the message's authentication code.
    ///
    /// Compare codes only with ``ConstantTime``.
    package func authenticate(_ message: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: Self.codeLength)
        var span = code.mutableSpan
        var buffer = unsafe span.mutableBytes
        unsafe authenticate(message.span.bytes, into: &buffer)
        return code
    }

    /// Writes the message's authentication code into the first 32 bytes of the buffer.
    func authenticate(_ message: RawSpan, into buffer: inout MutableRawSpan) {
        precondition(buffer.byteCount >= Self.codeLength)
        let result = states.withBytes { states in
            unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe states.withUnsafeBytes { states in
                    unsafe message.withUnsafeBytes { message in
                        unsafe ccrypto_hmac_sha256(
                            states.baseAddress,
                            message.baseAddress,
                            message.count,
                            buffer.baseAddress
                        )
                    }
                }
            }
        }
        // It cannot fail for any input. A wrong code would be worse than a crash.
        guard OpenSSL.isSuccess(result) else { OpenSSL.endProcess("HMAC failed") }
    }

    private static func begin(_ buffer: inout MutableRawSpan, index stateIndex: Int32, key: RawSpan, pad: UInt8) {
        // The block is wiped like every secret, because it contains the key.
        let block = Secret(capacity: blockLength) { block in
            for offset in 0..<blockLength {
                let byte = offset < key.byteCount ? key.byte(at: offset) : 0
                block.storeBytes(of: byte ^ pad, toByteOffset: offset, as: UInt8.self)
            }
            return blockLength
        }
        let result = block.withBytes { block in
            unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe block.withUnsafeBytes { block in
                    unsafe ccrypto_sha256_begin(buffer.baseAddress, stateIndex, block.baseAddress)
                }
            }
        }
        guard OpenSSL.isSuccess(result) else { OpenSSL.endProcess("SHA-256 failed") }
    }
}

extension Secret {
    fileprivate var bytes: [UInt8] {
        withBytes { span in (0..<span.byteCount).map { span.byte(at: $0) } }
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
        defer { unsafe buffer.withUnsafeMutableBytes { bytes in unsafe ErasedBytes.wipe(bytes) } }
        // The counter of the first and only block ends the message (section 2.3).
        var message = purpose
        message.append(1)
        unsafe key.authenticate(message.span.bytes, into: &buffer)
        return try body(buffer.bytes)
    }
}

/// Seals short texts, such as a user's id, as opaque bytes.
///
/// Equal texts give equal bytes.
///
/// The cipher is AES-256-GCM. Its nonce is an authentication code of the text, so that one nonce does not seal two
/// texts. The result shows that two texts are equal, and nothing else about them.
///
/// | bytes | content |
/// |---|---|
/// | 12 | nonce |
/// | a multiple of 32 | ciphertext: the text, followed by zero bytes, so that its length does not show |
/// | 16 | tag |
package struct TextSealingKey: Sendable {
    private static let salt = Array("refresh-worker handle 1".utf8)
    private static let paddedLength = 32

    private let cipherKey: Secret
    private let nonceKey: MessageKey

    /// Derives the key of an owner from a secret.
    ///
    /// Each owner has its own key.
    package init(from secret: Secret, owner: String) {
        let derivation = KeyDerivation(from: secret, salt: Self.salt)
        cipherKey = derivation.withKey(for: Array("cipher \(owner)".utf8)) { Secret(copying: $0) }
        nonceKey = MessageKey(derivation.withKey(for: Array("nonce \(owner)".utf8)) { Secret(copying: $0) })
    }

    /// Seals a text, which must not end with a NUL.
    package func seal(_ text: String) throws(CryptoError) -> [UInt8] {
        var message = Array(text.utf8)
        let excess = message.count % Self.paddedLength
        message.append(contentsOf: repeatElement(0, count: excess == 0 ? 0 : Self.paddedLength - excess))
        var bytes = Array(nonceKey.authenticate(message).prefix(CipherContext.nonceLength))
        bytes.append(contentsOf: repeatElement(0, count: message.count + CipherContext.tagLength))
        var span = bytes.mutableSpan
        var buffer = unsafe span.mutableBytes
        try cipherKey.withBytes { (key) throws(CryptoError) in
            try unsafe CipherContext.seal(message.span.bytes, key: key, into: &buffer, at: 0)
        }
        return bytes
    }

    /// Returns the text, or `nil` if the bytes were not made by ``seal(_:)`` with this key.
    package func open(_ sealed: [UInt8]) throws(CryptoError) -> String? {
        guard sealed.count >= CipherContext.overhead else { return nil }
        var message = [UInt8](repeating: 0, count: sealed.count - CipherContext.overhead)
        var span = message.mutableSpan
        var buffer = unsafe span.mutableBytes
        let isIntact = try cipherKey.withBytes { (key) throws(CryptoError) in
            try unsafe CipherContext.open(sealed.span.bytes, key: key, into: &buffer)
        }
        guard isIntact else { return nil }
        let length = message.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0
        return String(decoding: message[..<length], as: UTF8.self)
    }
}

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
