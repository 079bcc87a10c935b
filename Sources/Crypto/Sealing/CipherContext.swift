private import CCrypto

/// One pass of AES-256-GCM over one message, with OpenSSL's EVP interface.
///
/// A sealed message is the nonce, the ciphertext, which is as long as the message, and the tag.
///
/// The order of calls is `transform`, then `writeTag` or `isVerified`, each once
/// (https://docs.openssl.org/3.0/man3/EVP_EncryptInit/#aead-interface). Freeing the context wipes its key.
@safe
struct CipherContext: ~Copyable {
    static let keyLength = 32
    static let nonceLength = 12
    static let tagLength = 16
    /// Bytes that a sealed message has in addition to the message.
    static let overhead = nonceLength + tagLength

    /// Fetched once, because each fetch costs as much as sealing a token.
    ///
    /// `nonisolated(unsafe)` holds because a cipher does not change after it is fetched.
    private nonisolated(unsafe) static let cipher: OpaquePointer = {
        OpenSSL.prepare()
        guard let cipher = unsafe EVP_CIPHER_fetch(nil, "AES-256-GCM", nil) else {
            OpenSSL.endProcess("EVP_CIPHER_fetch failed")
        }
        return unsafe cipher
    }()

    /// Seals a message with the nonce that stands at this offset of the buffer.
    static func seal(
        _ message: RawSpan,
        key: RawSpan,
        into buffer: inout MutableRawSpan,
        at offset: Int
    ) throws(CryptoError) {
        let start = offset + nonceLength
        let cipher = try CipherContext(isSealing: true, key: key, nonce: buffer.bytes.extracting(offset..<start))
        try cipher.transform(message, into: &buffer, at: start)
        try cipher.writeTag(into: &buffer, at: start + message.byteCount)
    }

    /// Opens a sealed message, and returns `false` if it is not intact, or was sealed by another key.
    static func open(_ sealed: RawSpan, key: RawSpan, into message: inout MutableRawSpan) throws(CryptoError) -> Bool {
        let end = sealed.byteCount - tagLength
        let cipher = try CipherContext(isSealing: false, key: key, nonce: sealed.extracting(0..<nonceLength))
        try cipher.transform(sealed.extracting(nonceLength..<end), into: &message, at: 0)
        return try cipher.isVerified(by: sealed.extracting(end...))
    }

    private let context: OpaquePointer

    private init(isSealing: Bool, key: RawSpan, nonce: RawSpan) throws(CryptoError) {
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
                    isSealing ? 1 : 0
                )
            }
        }
        do throws(CryptoError) {
            try OpenSSL.check("EVP_CipherInit_ex", result: result)
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
    private func transform(_ message: RawSpan, into output: inout MutableRawSpan, at offset: Int) throws(CryptoError) {
        precondition((0...output.byteCount - message.byteCount).contains(offset))
        try unsafe output.withUnsafeMutableBytes { (output) throws(CryptoError) in
            let target = unsafe UnsafeMutableRawBufferPointer(rebasing: output[offset...])
            // An empty message also gets a valid address: with a null pointer, the library would treat it as
            // authenticated data.
            var unused: UInt8 = 0
            try unsafe withUnsafeMutablePointer(to: &unused) { (unused) throws(CryptoError) in
                let start = unsafe target.assumingMemoryBound(to: UInt8.self).baseAddress
                try unsafe update(message, into: start ?? unused)
            }
        }
    }

    /// Finishes the encryption and writes the tag.
    private func writeTag(into output: inout MutableRawSpan, at offset: Int) throws(CryptoError) {
        precondition((0...output.byteCount - Self.tagLength).contains(offset))
        try OpenSSL.check("EVP_CipherFinal_ex", result: finish())
        let result = unsafe output.withUnsafeMutableBytes { output in
            unsafe EVP_CIPHER_CTX_ctrl(
                context,
                EVP_CTRL_AEAD_GET_TAG,
                Int32(Self.tagLength),
                UnsafeMutableRawBufferPointer(rebasing: output[offset...]).baseAddress
            )
        }
        try OpenSSL.check("EVP_CTRL_AEAD_GET_TAG", result: result)
    }

    /// Finishes the decryption, and returns `true` if the tag matches the message, the key and the nonce.
    private func isVerified(by tag: RawSpan) throws(CryptoError) -> Bool {
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
        try OpenSSL.check("EVP_CTRL_AEAD_SET_TAG", result: result)
        guard finish() != 1 else { return true }
        ERR_clear_error()
        return false
    }

    private func update(_ input: RawSpan, into output: UnsafeMutablePointer<UInt8>?) throws(CryptoError) {
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
        try OpenSSL.check("EVP_CipherUpdate", result: result)
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
