private import Synchronization

/// The nonces of seals, from the library's random generator.
///
/// They are generated in blocks, because a call of the generator costs a third of a seal. A nonce is not a secret, so
/// the block is not wiped. Each one is used once: the program does not fork, so no other process has the block.
extension CipherContext {
    /// A nonce of 96 bits.
    private typealias Nonce = InlineArray<3, UInt32>

    /// The words of the nonces that are not used yet.
    private static let unusedWords = Mutex<[UInt32]>([])

    static func writeNonce(into buffer: inout MutableRawSpan, at start: Int) throws(CryptoError) {
        let nonce = try nextNonce()
        for index in nonce.indices {
            let offset = start + index * MemoryLayout<UInt32>.size
            buffer.storeBytes(of: nonce[index], toByteOffset: offset, as: UInt32.self)
        }
    }

    private static func nextNonce() throws(CryptoError) -> Nonce {
        try unusedWords.withLock { (words) throws(CryptoError) in
            if words.isEmpty {
                var filled = [UInt32](repeating: 0, count: 64 * Nonce.count)
                var span = filled.mutableSpan
                var buffer = unsafe span.mutableBytes
                try OpenSSL.fillRandomly(&buffer, in: 0..<buffer.byteCount)
                words = filled
            }
            return Nonce { _ in words.removeLast() }
        }
    }
}
