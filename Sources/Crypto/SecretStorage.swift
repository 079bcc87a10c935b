private import CCrypto

/// The bytes of a ``Secret``, overwritten before their memory is freed.
///
/// `@unchecked Sendable` holds because the bytes and their count are only written inside `init`, before any other
/// thread can reach the object, and only read after that.
@safe
final class SecretStorage: @unchecked Sendable {
    private let buffer: UnsafeMutableRawBufferPointer
    let count: Int

    /// Allocates the buffer; the closure writes the bytes and returns their number.
    ///
    /// The buffer starts as zeroes. If the closure throws, everything it wrote is wiped.
    init<Failure: Error>(
        capacity: Int,
        fill: (inout MutableRawSpan) throws(Failure) -> Int
    ) throws(Failure) {
        let buffer = unsafe ByteMemory.allocate(capacity)
        unsafe buffer.initializeMemory(as: UInt8.self, repeating: 0)
        do throws(Failure) {
            var span = unsafe buffer.mutableBytes
            let filled = try fill(&span)
            precondition((0...capacity).contains(filled), "a secret was filled beyond its capacity")
            unsafe self.buffer = unsafe buffer
            count = filled
        } catch {
            unsafe Self.release(buffer)
            throw error
        }
    }

    deinit {
        unsafe Self.release(buffer)
    }

    func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let filled = unsafe UnsafeRawBufferPointer(rebasing: buffer[..<count])
        return try body(unsafe filled.bytes)
    }

    /// Overwrites in a way that the optimiser may not remove (https://docs.openssl.org/3.0/man3/OPENSSL_malloc/).
    private static func release(_ buffer: UnsafeMutableRawBufferPointer) {
        unsafe OPENSSL_cleanse(buffer.baseAddress, buffer.count)
        unsafe ByteMemory.free(buffer)
    }
}
