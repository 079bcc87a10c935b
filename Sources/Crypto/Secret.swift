private import CCrypto

/// A string that must never be shown: a token, a client secret, a key.
///
/// Print, dump, mirrors, errors and encoders do not show it, and its memory is overwritten when the last copy is
/// released (copies share one buffer). The string from which it was made is not wiped, so make it as early as possible,
/// preferably from bytes.
package struct Secret: Sendable {
    private let storage: SecretStorage

    package init(_ string: String) {
        self.init(copying: unsafe string.utf8Span.span.bytes)
    }

    package init(utf8 bytes: some Collection<UInt8>) {
        self.init(capacity: bytes.count) { buffer in
            unsafe buffer.withUnsafeMutableBytes { target in unsafe target.copyBytes(from: bytes) }
            return buffer.byteCount
        }
    }

    package init(copying span: RawSpan) {
        self.init(capacity: span.byteCount) { buffer in
            unsafe buffer.withUnsafeMutableBytes { target in
                unsafe span.withUnsafeBytes { source in unsafe target.copyMemory(from: source) }
            }
            return buffer.byteCount
        }
    }

    init(concatenating parts: [Secret]) {
        self.init(capacity: parts.reduce(0) { $0 + $1.count }) { buffer in
            var end = 0
            for part in parts {
                part.withBytes { span in
                    for offset in 0..<span.byteCount {
                        buffer.storeBytes(of: span.byte(at: offset), toByteOffset: end + offset, as: UInt8.self)
                    }
                }
                end += part.count
            }
            return end
        }
    }

    /// Makes a secret in place, so that its bytes are never stored elsewhere.
    ///
    /// See ``SecretStorage``.
    init<Failure: Error>(
        capacity: Int,
        fill: (inout MutableRawSpan) throws(Failure) -> Int
    ) throws(Failure) {
        storage = try SecretStorage(capacity: capacity, fill: fill)
    }

    /// The number of UTF-8 bytes.
    package var count: Int { storage.count }

    package var isEmpty: Bool { count == 0 }

    /// Calls the closure with the bytes.
    ///
    /// The span cannot outlive the closure.
    package func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withBytes(body)
    }

    /// Returns the secret as a plain string, which can be printed and is not wiped, for APIs that cannot take bytes.
    ///
    /// This is the only way to a `String`, so that a search for its name finds every place where a secret is exposed.
    package func reveal() -> String {
        withBytes { span in unsafe span.withUnsafeBytes { bytes in unsafe String(decoding: bytes, as: UTF8.self) } }
    }
}

extension Secret: Equatable {
    /// Compares in a time that depends only on the lengths, so that it does not reveal how much of a guess was right.
    package static func == (left: Secret, right: Secret) -> Bool {
        guard left.count == right.count else { return false }
        return left.withBytes { leftSpan in
            right.withBytes { rightSpan in
                unsafe leftSpan.withUnsafeBytes { leftBytes in
                    unsafe rightSpan.withUnsafeBytes { rightBytes in
                        unsafe CRYPTO_memcmp(leftBytes.baseAddress, rightBytes.baseAddress, leftBytes.count) == 0
                    }
                }
            }
        }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<secret>" }

    package var debugDescription: String { description }

    /// Empty, because `dump` and other users of mirrors would bypass the descriptions.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The bytes of a ``Secret``, overwritten before their memory is freed.
///
/// `@unchecked Sendable` holds because the bytes and their count are only written inside `init`, before any other
/// thread can reach the object, and only read after that.
@safe
final class SecretStorage: @unchecked Sendable {
    private let buffer: UnsafeMutableRawBufferPointer
    let count: Int

    /// Allocates the buffer.
    ///
    /// The closure writes the bytes and returns their number.
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

/// New secrets, from libcrypto's random generator.
extension Secret {
    static func random(byteCount: Int) throws(SealError) -> Secret {
        try Secret(capacity: byteCount) { (buffer) throws(SealError) in
            try LibCrypto.fillRandomly(&buffer, in: 0..<buffer.byteCount)
            return buffer.byteCount
        }
    }

    /// Makes a text of the prefix and random bytes in base64url.
    ///
    /// It is for printing, so its copies are not wiped.
    package static func randomText(prefix: String, byteCount: Int) throws(SealError) -> Secret {
        let random = try random(byteCount: byteCount)
        let bytes = random.withBytes { span in (0..<span.byteCount).map { span.byte(at: $0) } }
        return Secret(prefix + Base64URL.encode(bytes))
    }
}

extension RawSpan {
    /// Returns the byte at a checked offset.
    ///
    /// The load is only unsafe for types that do not accept every bit pattern.
    @inlinable
    package func byte(at offset: Int) -> UInt8 {
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}
