private import CCrypto

/// An RSA private key for signing.
package struct RSAPrivateKey: Sendable {
    let handle: KeyHandle

    /// Reads an unencrypted PKCS #8 or PKCS #1 key of a safe size.
    package init(pem: Secret) throws(CryptoError) {
        let handle = try pem.withBytes { (span) throws(CryptoError) in
            try unsafe span.withUnsafeBytes { (bytes) throws(CryptoError) in
                let file = try unsafe MemoryFile(reading: bytes)
                return try file.readPrivateKey()
            }
        }
        try self.init(handle)
    }

    /// Generates a key.
    package static func generate(bits: Int32 = 2048) throws(CryptoError) -> RSAPrivateKey {
        try RSAPrivateKey(KeyGenerator().generate(bits: bits))
    }

    private init(_ handle: KeyHandle) throws(CryptoError) {
        let (kind, bits) = unsafe handle.withPointer { key in
            unsafe (EVP_PKEY_get_base_id(key), Int(EVP_PKEY_get_bits(key)))
        }
        guard kind == EVP_PKEY_RSA else { throw .otherKind }
        guard PublicKey.rsaSizes.contains(bits) else { throw .size(bits: bits) }
        self.handle = handle
    }

    /// Returns the RS256 signature of the bytes.
    func sign(_ bytes: [UInt8]) throws(CryptoError) -> [UInt8] {
        try SignatureContext().sign(bytes, with: handle)
    }

    /// Returns the key as PKCS #8 in PEM.
    package func pem() throws(CryptoError) -> Secret {
        let file = try MemoryFile()
        try file.write(handle)
        return file.content()
    }

    /// Returns the two numbers of the public key, big-endian.
    package func publicNumbers() throws(CryptoError) -> (modulus: [UInt8], exponent: [UInt8]) {
        (
            modulus: try BigNumber(OSSL_PKEY_PARAM_RSA_N, of: handle).bytes,
            exponent: try BigNumber(OSSL_PKEY_PARAM_RSA_E, of: handle).bytes
        )
    }
}

/// An in-memory file of OpenSSL, which its PEM readers and writers require.
///
/// The written data might be a key, so the file uses memory that OpenSSL wipes
/// (https://docs.openssl.org/3.0/man3/BIO_s_mem/).
@safe
struct MemoryFile: ~Copyable {
    private let file: OpaquePointer

    init() throws(CryptoError) {
        OpenSSL.prepare()
        guard let file = unsafe BIO_new(BIO_s_secmem()) else { throw .signingFailure(call: "BIO_new") }
        unsafe self.file = unsafe file
    }

    /// Reads bytes in place.
    ///
    /// They must outlive the file.
    @unsafe
    init(reading bytes: UnsafeRawBufferPointer) throws(CryptoError) {
        OpenSSL.prepare()
        guard let start = bytes.baseAddress, let file = unsafe BIO_new_mem_buf(start, Int32(clamping: bytes.count))
        else { throw .unreadable }
        unsafe self.file = unsafe file
    }

    deinit {
        unsafe BIO_free_all(file)
    }

    func readPrivateKey() throws(CryptoError) -> KeyHandle {
        // Without a callback, OpenSSL would ask the terminal for the password of an encrypted key.
        guard let key = unsafe PEM_read_bio_PrivateKey(file, nil, { _, _, _, _ in -1 }, nil) else {
            ERR_clear_error()
            throw .unreadable
        }
        return unsafe KeyHandle(key)
    }

    func write(_ key: KeyHandle) throws(CryptoError) {
        let result = unsafe key.withPointer { key in
            unsafe PEM_write_bio_PrivateKey(file, key, nil, nil, 0, nil, nil)
        }
        guard OpenSSL.isSuccess(result) else { throw .signingFailure(call: "PEM_write_bio_PrivateKey") }
    }

    /// Returns all data that was written and not yet read.
    func content() -> Secret {
        Secret(capacity: unsafe BIO_ctrl_pending(file)) { buffer in
            let count = unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe BIO_read(file, buffer.baseAddress, Int32(buffer.count))
            }
            return max(0, Int(count))
        }
    }
}

/// Generates RSA keys with OpenSSL's random generator (https://docs.openssl.org/3.0/man7/EVP_PKEY-RSA/).
@safe
struct KeyGenerator: ~Copyable {
    private let context: OpaquePointer

    init() throws(CryptoError) {
        OpenSSL.prepare()
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
            ERR_clear_error()
            throw .signingFailure(call: "EVP_PKEY_CTX_new_from_name")
        }
        unsafe self.context = unsafe context
    }

    deinit {
        unsafe EVP_PKEY_CTX_free(context)
    }

    func generate(bits: Int32) throws(CryptoError) -> KeyHandle {
        guard OpenSSL.isSuccess(unsafe EVP_PKEY_keygen_init(context)) else {
            throw .signingFailure(call: "EVP_PKEY_keygen_init")
        }
        guard OpenSSL.isSuccess(unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits)) else {
            throw .signingFailure(call: "EVP_PKEY_CTX_set_rsa_keygen_bits")
        }
        var key: OpaquePointer?
        guard OpenSSL.isSuccess(unsafe EVP_PKEY_generate(context, &key)), let key = unsafe key else {
            throw .signingFailure(call: "EVP_PKEY_generate")
        }
        return unsafe KeyHandle(key)
    }
}

/// A number of OpenSSL, copied out of a key.
@safe
struct BigNumber: ~Copyable {
    private let pointer: OpaquePointer

    init(_ parameter: String, of key: KeyHandle) throws(CryptoError) {
        var number: OpaquePointer?
        let result = unsafe key.withPointer { key in unsafe EVP_PKEY_get_bn_param(key, parameter, &number) }
        guard OpenSSL.isSuccess(result), let number = unsafe number else {
            throw .signingFailure(call: "EVP_PKEY_get_bn_param")
        }
        unsafe pointer = unsafe number
    }

    deinit {
        unsafe BN_free(pointer)
    }

    /// The magnitude, big-endian, without leading zeroes.
    var bytes: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: (Int(unsafe BN_num_bits(pointer)) + 7) / 8)
        let written = unsafe BN_bn2bin(pointer, &bytes)
        precondition(Int(written) == bytes.count, "BN_bn2bin wrote another length than BN_num_bits said")
        return bytes
    }
}

/// One operation on one message, hashed with SHA-256: RSASSA-PKCS1-v1_5 (RFC 7518, section 3.3), or ECDSA for an
/// elliptic key.
@safe
struct SignatureContext: ~Copyable {
    private let context: OpaquePointer

    init() throws(CryptoError) {
        guard let context = unsafe EVP_MD_CTX_new() else { throw .signingFailure(call: "EVP_MD_CTX_new") }
        unsafe self.context = unsafe context
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    /// Returns `true` if the key's signature of this message is valid.
    ///
    /// The key is only used during the call.
    func verifies(_ signature: [UInt8], of message: [UInt8], by key: KeyHandle) throws(CryptoError) -> Bool {
        try unsafe key.withPointer { (key) throws(CryptoError) in
            let initialised = unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key)
            guard OpenSSL.isSuccess(initialised) else { throw .signingFailure(call: "EVP_DigestVerifyInit") }
            let result = unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count)
            return OpenSSL.isSuccess(result)
        }
    }

    func sign(_ message: [UInt8], with key: KeyHandle) throws(CryptoError) -> [UInt8] {
        try unsafe key.withPointer { (key) throws(CryptoError) in
            let initialised = unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key)
            guard OpenSSL.isSuccess(initialised) else { throw .signingFailure(call: "EVP_DigestSignInit") }
            var length = 0
            let measured = unsafe EVP_DigestSign(context, nil, &length, message, message.count)
            guard OpenSSL.isSuccess(measured) else { throw .signingFailure(call: "EVP_DigestSign") }
            var signature = [UInt8](repeating: 0, count: length)
            let signed = unsafe EVP_DigestSign(context, &signature, &length, message, message.count)
            guard OpenSSL.isSuccess(signed) else { throw .signingFailure(call: "EVP_DigestSign") }
            return Array(signature[..<length])
        }
    }
}

/// Owns an OpenSSL key.
///
/// `@unchecked Sendable` holds because the key does not change after `init`, and OpenSSL lets many threads use an
/// unchanging key (https://docs.openssl.org/3.0/man7/openssl-threads/).
@safe
final class KeyHandle: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Takes ownership of the key.
    init(_ pointer: OpaquePointer) {
        unsafe self.pointer = unsafe pointer
    }

    deinit {
        unsafe EVP_PKEY_free(pointer)
    }

    /// Calls the closure with the key.
    ///
    /// The pointer must not outlive the closure.
    func withPointer<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(pointer)
    }
}
