private import Synchronization

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
