private import CCrypto

/// An RSA private key for signing.
package struct RSAPrivateKey: Sendable {
    private let handle: KeyHandle

    /// Reads an unencrypted PKCS #8 or PKCS #1 key of a safe size.
    package init(pem: Secret) throws(CryptoError) {
        try self.init(KeyHandle(pem: pem))
    }

    /// Generates a key.
    package static func generate(bits: Int32 = 2048) throws(CryptoError) -> RSAPrivateKey {
        try RSAPrivateKey(.generate(bits: bits))
    }

    private init(_ handle: KeyHandle) throws(CryptoError) {
        let (isRSA, bits) = handle.size
        guard isRSA else { throw .otherKind }
        guard PublicKey.rsaSizes.contains(bits) else { throw .size(bits: bits) }
        self.handle = handle
    }

    /// Returns the RS256 signature of the bytes.
    func sign(_ bytes: [UInt8]) throws(CryptoError) -> [UInt8] { try handle.sign(bytes) }

    /// Returns the key as PKCS #8 in PEM.
    package func pem() throws(CryptoError) -> Secret { try handle.pem() }

    /// Returns the two numbers of the public key, big-endian.
    package func publicNumbers() throws(CryptoError) -> (modulus: [UInt8], exponent: [UInt8]) {
        (modulus: try handle.number(OSSL_PKEY_PARAM_RSA_N), exponent: try handle.number(OSSL_PKEY_PARAM_RSA_E))
    }
}

/// A public key for checking signatures of other parties.
///
/// A key is good for one algorithm, whatever a token says about its own (RFC 8725, section 3.1).
package struct PublicKey: Sendable {
    package enum Algorithm: String, CaseIterable, Sendable {
        /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518, section 3.3).
        case rs256 = "RS256"
        /// ECDSA with P-256 and SHA-256 (RFC 7518, section 3.4).
        case es256 = "ES256"
    }

    /// A smaller key can be broken.
    ///
    /// A check with a larger one takes long enough to be abused.
    static let rsaSizes = 2048...8192
    private static let exponents: ClosedRange<UInt64> = 3...0x1_0000_0000
    /// The length of a coordinate of P-256, and of each number of a signature.
    private static let coordinateLength = 32

    package let algorithm: Algorithm
    private let handle: KeyHandle

    /// Reads the two numbers of an RSA key, big-endian, as a JSON Web Key has them (RFC 7518, section 6.3.1).
    package init(modulus: [UInt8], exponent: [UInt8]) throws(CryptoError) {
        let modulus = Array(modulus.drop { $0 == 0 })
        let exponent = Array(exponent.drop { $0 == 0 })
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard Self.rsaSizes.contains(bits) else { throw .size(bits: bits) }
        guard exponent.count <= 8 else { throw .exponent }
        let exponentValue = exponent.reduce(into: UInt64(0)) { $0 = $0 << 8 | UInt64($1) }
        guard Self.exponents.contains(exponentValue), exponentValue % 2 == 1 else { throw .exponent }
        guard modulus.last.map({ $0 % 2 == 1 }) == true else { throw .evenModulus }

        // The structure RSAPublicKey of RFC 8017, appendix A.1.1.
        let encoded = Self.tagged(0x30, Self.integer(modulus) + Self.integer(exponent))
        OpenSSL.prepare()
        let pointer = unsafe encoded.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe d2i_PublicKey(EVP_PKEY_RSA, nil, &position, bytes.count)
        }
        guard let pointer = unsafe pointer else {
            ERR_clear_error()
            throw .signingFailure(call: "d2i_PublicKey")
        }
        algorithm = .rs256
        handle = unsafe KeyHandle(pointer)
    }

    /// Reads the coordinates of a point of P-256, as a JSON Web Key has them (RFC 7518, section 6.2.1).
    package init(x: [UInt8], y: [UInt8]) throws(CryptoError) {
        guard x.count == Self.coordinateLength, y.count == Self.coordinateLength else { throw .point }
        // A SubjectPublicKeyInfo with id-ecPublicKey, prime256v1 and an uncompressed point (RFC 5480, section 2).
        let identifiers: [UInt8] = [
            0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01,
            0x07,
        ]
        let encoded = Self.tagged(0x30, Self.tagged(0x30, identifiers) + Self.tagged(0x03, [0x00, 0x04] + x + y))
        OpenSSL.prepare()
        let pointer = unsafe encoded.withUnsafeBufferPointer { bytes in
            var position = bytes.baseAddress
            return unsafe d2i_PUBKEY(nil, &position, bytes.count)
        }
        // OpenSSL refuses a point that is not on the curve.
        guard let pointer = unsafe pointer else {
            ERR_clear_error()
            throw .point
        }
        algorithm = .es256
        handle = unsafe KeyHandle(pointer)
    }

    /// Returns `true` if the signature of the bytes is valid for this key and its algorithm.
    func verifies(signature: [UInt8], of bytes: [UInt8]) -> Bool {
        let encoded: [UInt8]
        switch algorithm {
        case .rs256: encoded = signature
        case .es256:
            // A token has both numbers in fixed length, and OpenSSL reads the DER structure Ecdsa-Sig-Value.
            guard signature.count == 2 * Self.coordinateLength else { return false }
            let numbers = [signature.prefix(Self.coordinateLength), signature.suffix(Self.coordinateLength)]
            encoded = Self.tagged(0x30, numbers.flatMap { number in Self.integer(Array(number.drop { $0 == 0 })) })
        }
        do throws(CryptoError) {
            return try handle.verifies(encoded, of: bytes)
        } catch {
            OpenSSL.endProcess("a signature cannot be checked: \(error)")
        }
    }

    /// Encodes a DER INTEGER.
    ///
    /// A leading zero keeps it from being negative if the first bit is set.
    private static func integer(_ magnitude: [UInt8]) -> [UInt8] {
        let needsZero = magnitude.first.map { $0 >= 0x80 } ?? true
        return tagged(0x02, (needsZero ? [0] : []) + magnitude)
    }

    /// Encodes a DER value with its tag and length (X.690, section 8.1.3).
    private static func tagged(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        guard content.count >= 0x80 else { return [tag, UInt8(content.count)] + content }
        var length: [UInt8] = []
        var rest = content.count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [tag, 0x80 | UInt8(length.count)] + length + content
    }
}

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

    /// Generates an RSA key with OpenSSL's random generator (https://docs.openssl.org/3.0/man7/EVP_PKEY-RSA/).
    static func generate(bits: Int32) throws(CryptoError) -> KeyHandle {
        OpenSSL.prepare()
        guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
            ERR_clear_error()
            throw .signingFailure(call: "EVP_PKEY_CTX_new_from_name")
        }
        defer { unsafe EVP_PKEY_CTX_free(context) }
        try require("EVP_PKEY_keygen_init", unsafe EVP_PKEY_keygen_init(context))
        try require("EVP_PKEY_CTX_set_rsa_keygen_bits", unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits))
        var key: OpaquePointer?
        try require("EVP_PKEY_generate", unsafe EVP_PKEY_generate(context, &key))
        guard let key = unsafe key else { throw .signingFailure(call: "EVP_PKEY_generate") }
        return unsafe KeyHandle(key)
    }

    private static func require(_ call: String, _ result: Int32) throws(CryptoError) {
        guard OpenSSL.isSuccess(result) else { throw .signingFailure(call: call) }
    }

    /// The size in bits, and `true` for an RSA key.
    var size: (isRSA: Bool, bits: Int) {
        unsafe (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA, Int(EVP_PKEY_get_bits(key)))
    }

    /// Returns the private key as PKCS #8 in PEM.
    ///
    /// It is written to memory that OpenSSL wipes (https://docs.openssl.org/3.0/man3/BIO_s_mem/).
    func pem() throws(CryptoError) -> Secret {
        guard let file = unsafe BIO_new(BIO_s_secmem()) else { throw .signingFailure(call: "BIO_new") }
        defer { unsafe BIO_free_all(file) }
        let result = unsafe PEM_write_bio_PrivateKey(file, key, nil, nil, 0, nil, nil)
        try Self.require("PEM_write_bio_PrivateKey", result)
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
        try Self.require("EVP_PKEY_get_bn_param", unsafe EVP_PKEY_get_bn_param(key, parameter, &number))
        guard let number = unsafe number else { throw .signingFailure(call: "EVP_PKEY_get_bn_param") }
        defer { unsafe BN_free(number) }
        var bytes = [UInt8](repeating: 0, count: (Int(unsafe BN_num_bits(number)) + 7) / 8)
        let written = unsafe BN_bn2bin(number, &bytes)
        precondition(Int(written) == bytes.count, "BN_bn2bin wrote another length than BN_num_bits said")
        return bytes
    }

    // Messages are hashed with SHA-256. Signatures are RSASSA-PKCS1-v1_5 (RFC 7518, section 3.3), or ECDSA for an
    // elliptic key.

    /// Returns `true` if the key's signature of this message is valid.
    func verifies(_ signature: [UInt8], of message: [UInt8]) throws(CryptoError) -> Bool {
        let context = try unsafe Self.newContext()
        defer { unsafe EVP_MD_CTX_free(context) }
        try Self.require("EVP_DigestVerifyInit", unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key))
        let result = unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count)
        return OpenSSL.isSuccess(result)
    }

    func sign(_ message: [UInt8]) throws(CryptoError) -> [UInt8] {
        let context = try unsafe Self.newContext()
        defer { unsafe EVP_MD_CTX_free(context) }
        try Self.require("EVP_DigestSignInit", unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key))
        var length = 0
        try Self.require("EVP_DigestSign", unsafe EVP_DigestSign(context, nil, &length, message, message.count))
        var signature = [UInt8](repeating: 0, count: length)
        let signed = unsafe EVP_DigestSign(context, &signature, &length, message, message.count)
        try Self.require("EVP_DigestSign", signed)
        return Array(signature[..<length])
    }

    private static func newContext() throws(CryptoError) -> OpaquePointer {
        guard let context = unsafe EVP_MD_CTX_new() else { throw .signingFailure(call: "EVP_MD_CTX_new") }
        return unsafe context
    }
}
