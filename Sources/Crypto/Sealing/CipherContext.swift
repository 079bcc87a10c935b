private import CCrypto

/// One pass of AES-256-GCM over one message, with OpenSSL's EVP interface.
///
/// The order of calls is `transform`, then `writeTag` or `isVerified`, each once
/// (https://docs.openssl.org/3.0/man3/EVP_EncryptInit/#aead-interface). Freeing the context wipes its key.
@safe
struct CipherContext: ~Copyable {
    enum Direction: Int32 {
        case open = 0
        case seal = 1
    }

    static let keyLength = 32
    static let nonceLength = 12
    static let tagLength = 16

    /// Fetched once, because each fetch costs as much as sealing a token.
    ///
    /// `nonisolated(unsafe)` holds because a cipher does not change after it is fetched.
    private nonisolated(unsafe) static let cipher: OpaquePointer = {
        OpenSSL.prepare()
        guard let cipher = unsafe EVP_CIPHER_fetch(nil, "AES-256-GCM", nil) else {
            LibCrypto.endProcess("EVP_CIPHER_fetch failed")
        }
        return unsafe cipher
    }()

    private let context: OpaquePointer

    init(_ direction: Direction, key: RawSpan, nonce: RawSpan) throws(SealError) {
        precondition(key.byteCount == Self.keyLength && nonce.byteCount == Self.nonceLength)
        guard let context = unsafe EVP_CIPHER_CTX_new() else {
            throw .libraryFailure(call: "EVP_CIPHER_CTX_new", code: ERR_get_error())
        }
        let result = unsafe key.withUnsafeBytes { key in
            unsafe nonce.withUnsafeBytes { nonce in
                unsafe EVP_CipherInit_ex(
                    context,
                    Self.cipher,
                    nil,
                    key.assumingMemoryBound(to: UInt8.self).baseAddress,
                    nonce.assumingMemoryBound(to: UInt8.self).baseAddress,
                    direction.rawValue
                )
            }
        }
        do throws(SealError) {
            try LibCrypto.check("EVP_CipherInit_ex", result)
        } catch {
            unsafe EVP_CIPHER_CTX_free(context)
            throw error
        }
        unsafe self.context = unsafe context
    }

    deinit {
        unsafe EVP_CIPHER_CTX_free(context)
    }

    /// Encrypts or decrypts the whole message.
    ///
    /// The output has the same length.
    func transform(_ message: RawSpan, into output: inout MutableRawSpan, at offset: Int) throws(SealError) {
        precondition((0...output.byteCount - message.byteCount).contains(offset))
        try unsafe output.withUnsafeMutableBytes { (output) throws(SealError) in
            let target = unsafe UnsafeMutableRawBufferPointer(rebasing: output[offset...])
            // An empty message also gets a valid address: with a null pointer, the library would treat it as
            // authenticated data.
            var unused: UInt8 = 0
            try unsafe withUnsafeMutablePointer(to: &unused) { (unused) throws(SealError) in
                let start = unsafe target.assumingMemoryBound(to: UInt8.self).baseAddress
                try unsafe update(message, into: start ?? unused)
            }
        }
    }

    /// Finishes the encryption and writes the tag.
    func writeTag(into output: inout MutableRawSpan, at offset: Int) throws(SealError) {
        precondition((0...output.byteCount - Self.tagLength).contains(offset))
        try LibCrypto.check("EVP_CipherFinal_ex", finish())
        let result = unsafe output.withUnsafeMutableBytes { output in
            unsafe EVP_CIPHER_CTX_ctrl(
                context,
                EVP_CTRL_AEAD_GET_TAG,
                Int32(Self.tagLength),
                UnsafeMutableRawBufferPointer(rebasing: output[offset...]).baseAddress
            )
        }
        try LibCrypto.check("EVP_CTRL_AEAD_GET_TAG", result)
    }

    /// Finishes the decryption, and returns `true` if the tag matches the message, the key and the nonce.
    func isVerified(by tag: RawSpan) throws(SealError) -> Bool {
        precondition(tag.byteCount == Self.tagLength)
        let result = unsafe tag.withUnsafeBytes { tag in
            // The library only copies from the pointer, although its type allows writing.
            unsafe EVP_CIPHER_CTX_ctrl(
                context,
                EVP_CTRL_AEAD_SET_TAG,
                Int32(Self.tagLength),
                UnsafeMutableRawPointer(mutating: tag.baseAddress)
            )
        }
        try LibCrypto.check("EVP_CTRL_AEAD_SET_TAG", result)
        guard finish() != 1 else { return true }
        ERR_clear_error()
        return false
    }

    private func update(_ input: RawSpan, into output: UnsafeMutablePointer<UInt8>?) throws(SealError) {
        guard let length = Int32(exactly: input.byteCount) else {
            throw .libraryFailure(call: "EVP_CipherUpdate, which takes at most 2 GiB,", code: 0)
        }
        var written: Int32 = 0
        let result = unsafe input.withUnsafeBytes { input in
            unsafe EVP_CipherUpdate(
                context,
                output,
                &written,
                input.assumingMemoryBound(to: UInt8.self).baseAddress,
                length
            )
        }
        try LibCrypto.check("EVP_CipherUpdate", result)
    }

    /// Finishes the operation.
    ///
    /// It writes nothing in this mode, but the library requires an output buffer.
    private func finish() -> Int32 {
        var block: UInt8 = 0
        var written: Int32 = 0
        return unsafe EVP_CipherFinal_ex(context, &block, &written)
    }
}
