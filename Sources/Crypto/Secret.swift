private import Glibc

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
    /// See ``ErasedBytes``.
    init<Failure: Error>(capacity: Int, fill: (inout MutableRawSpan) throws(Failure) -> Int) throws(Failure) {
        var bytes = ErasedBytes(capacity: capacity)
        try bytes.fill(fill)
        storage = SecretStorage(bytes)
    }

    /// The number of UTF-8 bytes.
    package var count: Int { storage.bytes.count }

    package var isEmpty: Bool { count == 0 }

    /// Calls the closure with the bytes.
    ///
    /// The span cannot outlive the closure.
    package func withBytes<Result: ~Copyable, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.bytes.withBytes(body)
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
        left.withBytes { left in right.withBytes { right in ConstantTime.areEqual(left, right) } }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<secret>" }

    package var debugDescription: String { description }

    /// Empty, because `dump` and other users of mirrors would bypass the descriptions.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The bytes that the copies of a ``Secret`` share.
private final class SecretStorage: Sendable {
    let bytes: ErasedBytes

    init(_ bytes: consuming ErasedBytes) {
        self.bytes = bytes
    }
}

/// New secrets, from libcrypto's random generator.
extension Secret {
    static func random(byteCount: Int) throws(CryptoError) -> Secret {
        try Secret(capacity: byteCount) { (buffer) throws(CryptoError) in
            try OpenSSL.fillRandomly(&buffer, in: 0..<buffer.byteCount)
            return buffer.byteCount
        }
    }

    /// Makes a text of the prefix and random bytes in base64url.
    ///
    /// It is for printing, so its copies are not wiped.
    package static func randomText(prefix: String, byteCount: Int) throws(CryptoError) -> Secret {
        let random = try random(byteCount: byteCount)
        let bytes = random.withBytes { span in (0..<span.byteCount).map { span.byte(at: $0) } }
        return Secret(prefix + Base64URL.encode(bytes))
    }
}

extension Secret {
    /// The lines of a secret text without line breaks and without empty lines.
    package var lines: [Secret] { allLines.filter { !$0.isEmpty } }

    /// All lines of a secret text without line breaks.
    ///
    /// Their indexes match the line numbers of an editor.
    package var allLines: [Secret] { parts(by: [UInt8(ascii: "\n")]).map { $0.dropping("\r") } }

    /// The words of a secret line, separated by blanks.
    package var words: [Secret] { parts(by: [UInt8(ascii: " "), UInt8(ascii: "\t")]).filter { !$0.isEmpty } }

    /// `true` if the text begins with `#`.
    package var isComment: Bool { withBytes { $0.byteCount > 0 && $0.byte(at: 0) == UInt8(ascii: "#") } }

    /// `true` if every byte is a visible ASCII character.
    package var isVisibleASCII: Bool {
        withBytes { span in (0..<span.byteCount).allSatisfy { (0x21...0x7e).contains(span.byte(at: $0)) } }
    }

    /// `true` if the text ends with a string, which is not secret.
    package func hasSuffix(_ suffix: String) -> Bool {
        let suffix = Array(suffix.utf8)
        return withBytes { span in
            let start = span.byteCount - suffix.count
            return start >= 0 && suffix.indices.allSatisfy { span.byte(at: start + $0) == suffix[$0] }
        }
    }

    /// Returns the text after a prefix, which is not secret, or `nil` if it does not begin with it.
    package func suffix(after prefix: String) -> Secret? {
        let prefix = Array(prefix.utf8)
        return withBytes { span in
            guard span.byteCount >= prefix.count, prefix.indices.allSatisfy({ span.byte(at: $0) == prefix[$0] }) else {
                return nil
            }
            return Secret(copying: span.extracting(droppingFirst: prefix.count))
        }
    }

    private func parts(by separators: [UInt8]) -> [Secret] {
        withBytes { span in
            var parts: [Secret] = []
            var start = 0
            for offset in 0...span.byteCount {
                guard offset == span.byteCount || separators.contains(span.byte(at: offset)) else { continue }
                parts.append(Secret(copying: span.extracting(start..<offset)))
                start = offset + 1
            }
            return parts
        }
    }

    func dropping(_ suffix: String) -> Secret {
        guard hasSuffix(suffix) else { return self }
        return withBytes { Secret(copying: $0.extracting(0..<($0.byteCount - suffix.utf8.count))) }
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

/// A growing byte buffer that is overwritten before its memory is freed, because it might hold tokens.
///
/// `@unchecked Sendable` holds because the value cannot be copied: only its owner can reach the memory, and the memory
/// of a `let` is never written again.
@safe
package struct ErasedBytes: ~Copyable, @unchecked Sendable {
    private var buffer: UnsafeMutableRawBufferPointer
    package private(set) var count = 0

    package init(capacity: Int = 0) {
        unsafe buffer = unsafe Self.allocate(capacity)
    }

    deinit {
        unsafe Self.release(buffer)
    }

    /// Sets the whole capacity to zeroes.
    ///
    /// The closure then writes the bytes and returns their number.
    fileprivate mutating func fill<Failure: Error>(
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

    /// Grows by moving to a larger buffer, and wipes the smaller one.
    private mutating func reserve(_ more: Int) {
        let needed = count + more
        guard unsafe needed > buffer.count else { return }
        let larger = unsafe Self.allocate(max(needed, buffer.count * 2, 1024))
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
