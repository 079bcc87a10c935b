private import Base

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
        var bytes = ErasedBytes(capacity: span.byteCount)
        bytes.append(span)
        storage = SecretStorage(bytes)
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

    /// In UTF-8 bytes.
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
