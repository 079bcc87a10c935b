private import CCrypto

/// An RSA private key for signing.
package struct RSAPrivateKey: Sendable {
    let handle: KeyHandle

    /// Reads an unencrypted PKCS #8 or PKCS #1 key of a safe size.
    package init(pem: Secret) throws(RSAKeyError) {
        let handle = try pem.withBytes { (span) throws(RSAKeyError) in
            try unsafe span.withUnsafeBytes { (bytes) throws(RSAKeyError) in
                let file = try unsafe MemoryFile(reading: bytes)
                return try file.readPrivateKey()
            }
        }
        try self.init(handle)
    }

    /// Generates a key.
    package static func generate(bits: Int32 = 2048) throws(RSAKeyError) -> RSAPrivateKey {
        try RSAPrivateKey(KeyGenerator().generate(bits: bits))
    }

    private init(_ handle: KeyHandle) throws(RSAKeyError) {
        let (kind, bits) = unsafe handle.withPointer { key in
            unsafe (EVP_PKEY_get_base_id(key), Int(EVP_PKEY_get_bits(key)))
        }
        guard kind == EVP_PKEY_RSA else { throw .otherKind }
        guard RSAPublicKey.sizes.contains(bits) else { throw .size(bits: bits) }
        self.handle = handle
    }

    /// Returns the RS256 signature of the bytes.
    func sign(_ bytes: [UInt8]) throws(RSAKeyError) -> [UInt8] {
        try SignatureContext().sign(bytes, with: handle)
    }

    /// Returns the key as PKCS #8 in PEM.
    package func pem() throws(RSAKeyError) -> Secret {
        let file = try MemoryFile()
        try file.write(handle)
        return file.content()
    }

    /// Returns the two numbers of the public key, big-endian.
    package func publicNumbers() throws(RSAKeyError) -> (modulus: [UInt8], exponent: [UInt8]) {
        (
            modulus: try BigNumber(OSSL_PKEY_PARAM_RSA_N, of: handle).bytes,
            exponent: try BigNumber(OSSL_PKEY_PARAM_RSA_E, of: handle).bytes
        )
    }
}

/// The reason why an RSA key cannot be used.
///
/// It never quotes the key.
package enum RSAKeyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The data is not an unencrypted private key in PEM.
    case unreadable
    case otherKind
    case size(bits: Int)
    case exponent
    case evenModulus
    case libraryFailure(call: String)

    package var description: String {
        switch self {
        case .unreadable: "it is not an unencrypted private key in PEM"
        case .otherKind: "it is not an RSA key"
        case .size(let bits):
            "it has \(bits) bits, not \(RSAPublicKey.sizes.lowerBound) to \(RSAPublicKey.sizes.upperBound)"
        case .exponent: "its exponent is not an odd number from 3 to 2^32"
        case .evenModulus: "its modulus is even"
        case .libraryFailure(let call): "\(call) failed"
        }
    }
}

/// An in-memory file of OpenSSL, which its PEM readers and writers require.
///
/// The written data may be a key, so the file uses memory that OpenSSL wipes
/// (https://docs.openssl.org/3.0/man3/BIO_s_mem/).
@safe
struct MemoryFile: ~Copyable {
    private let file: OpaquePointer

    init() throws(RSAKeyError) {
        OpenSSL.prepare()
        guard let file = unsafe BIO_new(BIO_s_secmem()) else { throw .libraryFailure(call: "BIO_new") }
        unsafe self.file = unsafe file
    }

    /// Reads bytes in place.
    ///
    /// They must outlive the file.
    @unsafe
    init(reading bytes: UnsafeRawBufferPointer) throws(RSAKeyError) {
        OpenSSL.prepare()
        guard let start = bytes.baseAddress, let file = unsafe BIO_new_mem_buf(start, Int32(clamping: bytes.count))
        else { throw .unreadable }
        unsafe self.file = unsafe file
    }

    deinit {
        unsafe BIO_free_all(file)
    }

    func readPrivateKey() throws(RSAKeyError) -> KeyHandle {
        // Without a callback, OpenSSL would ask the terminal for the password of an encrypted key.
        guard let key = unsafe PEM_read_bio_PrivateKey(file, nil, { _, _, _, _ in -1 }, nil) else {
            ERR_clear_error()
            throw .unreadable
        }
        return unsafe KeyHandle(key)
    }

    func write(_ key: KeyHandle) throws(RSAKeyError) {
        let result = unsafe key.withPointer { key in
            unsafe PEM_write_bio_PrivateKey(file, key, nil, nil, 0, nil, nil)
        }
        guard LibCrypto.isSuccess(result) else { throw .libraryFailure(call: "PEM_write_bio_PrivateKey") }
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

    init() throws(RSAKeyError) {
        OpenSSL.prepare()
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
            ERR_clear_error()
            throw .libraryFailure(call: "EVP_PKEY_CTX_new_from_name")
        }
        unsafe self.context = unsafe context
    }

    deinit {
        unsafe EVP_PKEY_CTX_free(context)
    }

    func generate(bits: Int32) throws(RSAKeyError) -> KeyHandle {
        guard LibCrypto.isSuccess(unsafe EVP_PKEY_keygen_init(context)) else {
            throw .libraryFailure(call: "EVP_PKEY_keygen_init")
        }
        guard LibCrypto.isSuccess(unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits)) else {
            throw .libraryFailure(call: "EVP_PKEY_CTX_set_rsa_keygen_bits")
        }
        var key: OpaquePointer?
        guard LibCrypto.isSuccess(unsafe EVP_PKEY_generate(context, &key)), let key = unsafe key else {
            throw .libraryFailure(call: "EVP_PKEY_generate")
        }
        return unsafe KeyHandle(key)
    }
}
