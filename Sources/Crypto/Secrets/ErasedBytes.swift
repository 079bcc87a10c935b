private import Glibc

/// A growing byte buffer that is overwritten before its memory is freed, because it might hold tokens.
///
/// `@unchecked Sendable` holds because the value cannot be copied: only its owner can reach the memory, and the memory
/// of a `let` is never written again.
@safe
package struct ErasedBytes: ~Copyable, @unchecked Sendable {
    private var buffer: UnsafeMutableRawBufferPointer
    package private(set) var count = 0

    /// Enough for the head of most responses. For blocks of a kilobyte and more glibc searches longest
    /// (https://sourceware.org/glibc/wiki/MallocInternals).
    private static let smallestGrowth = 512

    package init(capacity: Int = 0) {
        unsafe buffer = unsafe Self.allocate(capacity)
    }

    deinit {
        unsafe Self.release(buffer)
    }

    /// Sets the whole capacity to zeroes.
    ///
    /// The closure then writes the bytes and returns their number.
    mutating func fill<Failure: Error>(
        _ fill: (inout MutableRawSpan) throws(Failure) -> Int
    ) throws(Failure) {
        unsafe buffer.initializeMemory(as: UInt8.self, repeating: 0)
        var span = unsafe buffer.mutableBytes
        let filled = try fill(&span)
        unsafe precondition((0...buffer.count).contains(filled), "a secret was filled beyond its capacity")
        count = filled
    }

    package mutating func append(_ byte: UInt8) {
        reserve(1)
        unsafe buffer.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count += 1
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        reserve(bytes.count)
        unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    package mutating func append(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { unsafe append($0) }
    }

    package mutating func append(_ bytes: RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe append($0) }
    }

    /// Wipes the bytes and keeps the capacity.
    package mutating func removeAll() {
        unsafe Self.wipe(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
        count = 0
    }

    package func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let filled = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
        return try body(unsafe filled.bytes)
    }

    /// The address of the bytes, for a C function that reads them later, valid until the value changes or is destroyed.
    @unsafe
    package var address: UnsafeRawPointer? { unsafe UnsafeRawPointer(buffer.baseAddress) }

    private mutating func reserve(_ more: Int) {
        let needed = count + more
        if unsafe needed > buffer.count { grow(toHold: needed) }
    }

    /// Moves to a larger buffer, and wipes the smaller one.
    private mutating func grow(toHold needed: Int) {
        let larger = unsafe Self.allocate(max(needed, buffer.count * 2, Self.smallestGrowth))
        unsafe larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        unsafe Self.release(buffer)
        unsafe buffer = unsafe larger
    }

    /// Allocates memory from the C library.
    ///
    /// Swift's own allocation of raw memory asks for an alignment, which takes three times as many instructions.
    private static func allocate(_ count: Int) -> UnsafeMutableRawBufferPointer {
        guard count > 0 else { return unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0) }
        guard let start = unsafe malloc(count) else { fatalError("out of memory") }
        return unsafe UnsafeMutableRawBufferPointer(start: start, count: count)
    }

    private static func release(_ buffer: UnsafeMutableRawBufferPointer) {
        unsafe wipe(buffer)
        unsafe free(buffer.baseAddress)
    }

    /// Overwrites memory in a way that the compiler cannot remove
    /// (https://man7.org/linux/man-pages/man3/bzero.3.html).
    package static func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        unsafe explicit_bzero(start, bytes.count)
    }
}
