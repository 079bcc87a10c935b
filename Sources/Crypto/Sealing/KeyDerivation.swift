/// HKDF with SHA-256 (RFC 5869), to derive one key for each purpose from one secret.
struct KeyDerivation: Sendable {
    /// The length of a derived key: one block of the expansion, so that a key costs one HMAC.
    static let keyLength = MessageKey.codeLength

    /// The pseudorandom key of RFC 5869, section 2.2.
    private let key: MessageKey

    /// Extracts the pseudorandom key.
    ///
    /// The salt separates the uses of one secret. It does not have to be secret.
    init(from secret: Secret, salt: [UInt8]) {
        let extractor = MessageKey(Secret(utf8: salt))
        key = MessageKey(
            Secret(capacity: Self.keyLength) { buffer in
                secret.withBytes { extractor.authenticate($0, into: &buffer) }
                return Self.keyLength
            }
        )
    }

    /// Calls the closure with the key for one purpose, and wipes the key afterwards.
    func withKey<Result: ~Copyable, Failure: Error>(
        for purpose: consuming [UInt8],
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var block = InlineArray<32, UInt8>(repeating: 0)
        var span = block.mutableSpan
        var buffer = unsafe span.mutableBytes
        defer { unsafe buffer.withUnsafeMutableBytes { bytes in unsafe ErasedBytes.wipe(bytes) } }
        // The counter of the first and only block ends the message (section 2.3).
        var message = purpose
        message.append(1)
        unsafe key.authenticate(message.span.bytes, into: &buffer)
        return try body(buffer.bytes)
    }
}
