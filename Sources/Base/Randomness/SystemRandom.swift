private import Glibc
private import Synchronization

/// The system's random numbers, read in blocks: a system call costs more than all else that is done with a number.
package struct SystemRandom: RandomSource {
    /// The numbers that were read and are not used yet. Each is used once.
    private static let unused = Mutex<[UInt64]>([])

    package init() {}

    package func nextUnit() -> Double { Double(nextBits() >> 11) * 0x1p-53 }

    package func nextBits() -> UInt64 {
        Self.unused.withLock { numbers in
            if numbers.isEmpty { Self.fill(&numbers) }
            return numbers.removeLast()
        }
    }

    /// The system gives at most 256 bytes in one call (https://man7.org/linux/man-pages/man3/getentropy.3.html).
    private static func fill(_ numbers: inout [UInt64]) {
        numbers = Array(repeating: 0, count: 256 / MemoryLayout<UInt64>.size)
        let result = unsafe numbers.withUnsafeMutableBytes { bytes in
            unsafe getentropy(bytes.baseAddress, bytes.count)
        }
        // The kernel's generator is ready long before the program starts, so the call cannot fail.
        precondition(result == 0, "getentropy failed with errno \(errno)")
    }
}
