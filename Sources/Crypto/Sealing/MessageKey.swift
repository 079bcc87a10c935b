private import CCrypto
private import Synchronization

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
        guard LibCrypto.isSuccess(result) else { LibCrypto.endProcess("HMAC failed") }
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
        guard LibCrypto.isSuccess(result) else { LibCrypto.endProcess("SHA-256 failed") }
    }
}

extension Secret {
    fileprivate var bytes: [UInt8] {
        withBytes { span in (0..<span.byteCount).map { span.byte(at: $0) } }
    }
}

/// The nonces of seals, from the library's random generator.
///
/// They are generated in blocks, because a call of the generator costs a third of a seal. A nonce is not a secret, so
/// the block is not wiped. Each one is used once: the program does not fork, so no other process has the block.
enum Nonces {
    /// A nonce of 96 bits.
    typealias Nonce = InlineArray<3, UInt32>

    private struct Block {
        static let wordCount = 64 * 3

        var words: [UInt32] = []

        mutating func fill() throws(SealError) {
            var words = [UInt32](repeating: 0, count: Self.wordCount)
            var span = words.mutableSpan
            var buffer = unsafe span.mutableBytes
            try LibCrypto.fillRandomly(&buffer, in: 0..<buffer.byteCount)
            self.words = words
        }
    }

    private static let block = Mutex(Block())

    /// Writes the next nonce into a part of the buffer.
    static func write(into buffer: inout MutableRawSpan, in range: Range<Int>) throws(SealError) {
        precondition(range.count == CipherContext.nonceLength)
        let nonce = try next()
        for index in nonce.indices {
            let offset = range.lowerBound + index * MemoryLayout<UInt32>.size
            buffer.storeBytes(of: nonce[index], toByteOffset: offset, as: UInt32.self)
        }
    }

    private static func next() throws(SealError) -> Nonce {
        try block.withLock { (block) throws(SealError) in
            if block.words.isEmpty { try block.fill() }
            return Nonce { _ in block.words.removeLast() }
        }
    }
}
