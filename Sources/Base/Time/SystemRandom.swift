private import Glibc
private import Synchronization

/// The system's random numbers, read in blocks: a system call costs more than all else that is done with a number.
package struct SystemRandom: RandomSource {
    private static let block = Mutex(RandomBlock())

    package init() {}

    package func nextUnit() -> Double { Double(nextBits() >> 11) * 0x1p-53 }
    package func nextBits() -> UInt64 { Self.block.withLock { $0.next() } }
}

/// Numbers that were read from the system and are not used yet; each is used once.
private struct RandomBlock {
    /// The system gives at most 256 bytes in one call (https://man7.org/linux/man-pages/man3/getentropy.3.html).
    private static let count = 256 / MemoryLayout<UInt64>.size

    private var numbers: [UInt64] = []

    mutating func next() -> UInt64 {
        if numbers.isEmpty { fill() }
        return numbers.removeLast()
    }

    private mutating func fill() {
        numbers = Array(repeating: 0, count: Self.count)
        let result = unsafe numbers.withUnsafeMutableBytes { bytes in
            unsafe getentropy(bytes.baseAddress, bytes.count)
        }
        // The kernel's generator is ready long before the program starts, so the call cannot fail.
        precondition(result == 0, "getentropy failed with errno \(errno)")
    }
}
