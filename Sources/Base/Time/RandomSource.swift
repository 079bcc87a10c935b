private import Glibc
private import Synchronization

/// The source of randomness: ids, claims and back-off take it through `init`, so that a test can repeat its values.
package protocol RandomSource: Sendable {
    /// Returns a number evenly distributed from 0 up to but not including 1.
    func nextUnit() -> Double
    /// Returns sixty-four random bits.
    func nextBits() -> UInt64
}

/// The system's random numbers, read in blocks: a system call costs more than all else that is done with a number.
package struct SystemRandom: RandomSource {
    /// The numbers that were read and are not used yet.
    ///
    /// Each is used once.
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

/// Random numbers that a seed reproduces (SplitMix64, https://prng.di.unimi.it/splitmix64.c).
package final class SeededRandom: RandomSource {
    private let state: Mutex<UInt64>

    package init(seed: UInt64) {
        state = Mutex(seed)
    }

    package func nextBits() -> UInt64 {
        state.withLock { state in
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return mixed ^ (mixed >> 31)
        }
    }

    package func nextUnit() -> Double { Double(nextBits() >> 11) * 0x1p-53 }
}
