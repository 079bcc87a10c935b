private import CCrypto

/// Owns an OpenSSL key.
///
/// `@unchecked Sendable` holds because the key does not change after `init`, and OpenSSL lets many threads use an
/// unchanging key (https://docs.openssl.org/3.0/man7/openssl-threads/).
@safe
final class KeyHandle: @unchecked Sendable {
    private let key: OpaquePointer

    /// Takes ownership of the key.
    init(_ key: OpaquePointer) {
        unsafe self.key = unsafe key
    }

    deinit {
        unsafe EVP_PKEY_free(key)
    }

    /// Reads an unencrypted private key.
    convenience init(pem: Secret) throws(CryptoError) {
        OpenSSL.prepare()
        let read = unsafe pem.withBytes { span in
            unsafe span.withUnsafeBytes { bytes -> OpaquePointer? in
                guard let start = bytes.baseAddress,
                    let file = unsafe BIO_new_mem_buf(start, Int32(clamping: bytes.count))
                else { return nil }
                defer { unsafe BIO_free_all(file) }
                // Without a callback, OpenSSL would ask the terminal for the password of an encrypted key.
                return unsafe PEM_read_bio_PrivateKey(file, nil, { _, _, _, _ in -1 }, nil)
            }
        }
        guard let key = unsafe read else {
            ERR_clear_error()
            throw .unreadable
        }
        unsafe self.init(key)
    }

    /// Makes a private key of P-256 from its scalar, which must not be zero and must be below the order of the group.
    convenience init(p256 scalar: Secret) throws(CryptoError) {
        OpenSSL.prepare()
        // The structure ECPrivateKey without a public key, which OpenSSL then computes (RFC 5915, section 3).
        let encoded = Secret(
            concatenating: [
                Secret(utf8: [0x30, 0x31, 0x02, 0x01, 0x01, 0x04, 0x20] as [UInt8]), scalar,
                Secret(utf8: [0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07] as [UInt8]),
            ]
        )
        let read = unsafe encoded.withBytes { span in
            unsafe span.withUnsafeBytes { bytes -> OpaquePointer? in
                var position = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
                return unsafe d2i_PrivateKey(EVP_PKEY_EC, nil, &position, bytes.count)
            }
        }
        guard let key = unsafe read else {
            ERR_clear_error()
            throw .scalar
        }
        unsafe self.init(key)
    }

    /// Generates an RSA key with OpenSSL's random generator (https://docs.openssl.org/3.0/man7/EVP_PKEY-RSA/).
    static func generate(bits: Int32) throws(CryptoError) -> KeyHandle {
        OpenSSL.prepare()
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
            ERR_clear_error()
            throw .signingFailure(call: "EVP_PKEY_CTX_new_from_name")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        try require("EVP_PKEY_keygen_init", result: unsafe EVP_PKEY_keygen_init(context))
        try require("EVP_PKEY_CTX_set_rsa_keygen_bits", result: unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits))
        var key: OpaquePointer?
        try require("EVP_PKEY_generate", result: unsafe EVP_PKEY_generate(context, &key))
        guard let key = unsafe key else { throw .signingFailure(call: "EVP_PKEY_generate") }
        return unsafe KeyHandle(key)
    }

    private static func require(_ call: String, result: Int32) throws(CryptoError) {
        guard OpenSSL.isSuccess(result) else { throw .signingFailure(call: call) }
    }

    var isRSA: Bool { unsafe EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA }

    var bits: Int { unsafe Int(EVP_PKEY_get_bits(key)) }

    /// Returns the private key as PKCS #8 in PEM.
    ///
    /// It is written to memory that OpenSSL wipes (https://docs.openssl.org/3.0/man3/BIO_s_mem/).
    func pem() throws(CryptoError) -> Secret {
        guard let file = unsafe BIO_new(BIO_s_secmem()) else { throw .signingFailure(call: "BIO_new") }
        defer { unsafe BIO_free_all(file) }
        let result = unsafe PEM_write_bio_PrivateKey(file, key, nil, nil, 0, nil, nil)
        try Self.require("PEM_write_bio_PrivateKey", result: result)
        return Secret(capacity: unsafe BIO_ctrl_pending(file)) { buffer in
            let count = unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe BIO_read(file, buffer.baseAddress, Int32(buffer.count))
            }
            return max(0, Int(count))
        }
    }

    /// Returns a number of the key, big-endian, without leading zeroes.
    func number(_ parameter: String) throws(CryptoError) -> [UInt8] {
        var number: OpaquePointer?
        try Self.require("EVP_PKEY_get_bn_param", result: unsafe EVP_PKEY_get_bn_param(key, parameter, &number))
        guard let number = unsafe number else { throw .signingFailure(call: "EVP_PKEY_get_bn_param") }
        defer { unsafe BN_free(number) }
        var bytes = [UInt8](repeating: 0, count: (Int(unsafe BN_num_bits(number)) + 7) / 8)
        let written = unsafe BN_bn2bin(number, &bytes)
        precondition(Int(written) == bytes.count, "BN_bn2bin wrote another length than BN_num_bits said")
        return bytes
    }

    // Messages are hashed with SHA-256. An RSA key signs with RSASSA-PKCS1-v1_5 (RFC 7518, section 3.3), an elliptic
    // curve key with ECDSA (section 3.4).

    /// Returns `true` if the key's signature of this message is valid.
    func verifies(_ signature: [UInt8], of message: [UInt8]) throws(CryptoError) -> Bool {
        let context = try unsafe Self.newContext()
        defer { unsafe EVP_MD_CTX_free(context) }
        try Self.require(
            "EVP_DigestVerifyInit",
            result: unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key)
        )
        let result = unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count)
        return OpenSSL.isSuccess(result)
    }

    func sign(_ message: [UInt8]) throws(CryptoError) -> [UInt8] {
        let context = try unsafe Self.newContext()
        defer { unsafe EVP_MD_CTX_free(context) }
        try Self.require("EVP_DigestSignInit", result: unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key))
        var length = 0
        try Self.require("EVP_DigestSign", result: unsafe EVP_DigestSign(context, nil, &length, message, message.count))
        var signature = [UInt8](repeating: 0, count: length)
        let signed = unsafe EVP_DigestSign(context, &signature, &length, message, message.count)
        try Self.require("EVP_DigestSign", result: signed)
        return Array(signature[..<length])
    }

    /// Returns the numbers r and s of an ECDSA signature, each big-endian and in fixed length.
    ///
    /// OpenSSL writes the structure Ecdsa-Sig-Value (RFC 3279, section 2.2.3). A token has only the two numbers (RFC
    /// 7518, section 3.4).
    static func numbers(ofSignature encoded: [UInt8], length: Int) throws(CryptoError) -> [UInt8] {
        let signature = unsafe encoded.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe d2i_ECDSA_SIG(nil, &position, bytes.count)
        }
        guard let signature = unsafe signature else {
            ERR_clear_error()
            throw .signingFailure(call: "d2i_ECDSA_SIG")
        }
        defer { unsafe ECDSA_SIG_free(signature) }
        let first = try unsafe padded(ECDSA_SIG_get0_r(signature), length: length)
        let second = try unsafe padded(ECDSA_SIG_get0_s(signature), length: length)
        return first + second
    }

    private static func padded(_ number: OpaquePointer?, length: Int) throws(CryptoError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: length)
        guard unsafe BN_bn2binpad(number, &bytes, Int32(length)) == Int32(length) else {
            throw .signingFailure(call: "BN_bn2binpad")
        }
        return bytes
    }

    private static func newContext() throws(CryptoError) -> OpaquePointer {
        guard let context = unsafe EVP_MD_CTX_new() else { throw .signingFailure(call: "EVP_MD_CTX_new") }
        return unsafe context
    }
}
