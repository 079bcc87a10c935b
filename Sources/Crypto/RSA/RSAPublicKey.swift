private import CCrypto

/// An RSA public key, for checking signatures of other parties.
package struct RSAPublicKey: Sendable {
    /// A smaller key can be broken.
    ///
    /// A check with a larger one takes long enough to be abused.
    static let sizes = 2048...8192
    private static let exponents: ClosedRange<UInt64> = 3...0x1_0000_0000

    private let handle: KeyHandle

    /// Reads the two numbers of the key, big-endian, as a JSON Web Key has them (RFC 7518, section 6.3.1).
    package init(modulus: [UInt8], exponent: [UInt8]) throws(RSAKeyError) {
        let modulus = Array(modulus.drop { $0 == 0 })
        let exponent = Array(exponent.drop { $0 == 0 })
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard Self.sizes.contains(bits) else { throw .size(bits: bits) }
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
            throw .libraryFailure(call: "d2i_PublicKey")
        }
        handle = unsafe KeyHandle(pointer)
    }

    /// Returns `true` if the signature is a valid RS256 signature of the bytes for this key.
    func verifies(signature: [UInt8], of bytes: [UInt8]) -> Bool {
        do throws(RSAKeyError) {
            return try SignatureContext().verifies(signature, of: bytes, by: handle)
        } catch {
            LibCrypto.endProcess("a signature cannot be checked: \(error)")
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

/// A number of OpenSSL, copied out of a key.
@safe
struct BigNumber: ~Copyable {
    private let pointer: OpaquePointer

    init(_ parameter: String, of key: KeyHandle) throws(RSAKeyError) {
        var number: OpaquePointer?
        let result = unsafe key.withPointer { key in unsafe EVP_PKEY_get_bn_param(key, parameter, &number) }
        guard LibCrypto.isSuccess(result), let number = unsafe number else {
            throw .libraryFailure(call: "EVP_PKEY_get_bn_param")
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

/// One RS256 operation on one message: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518, section 3.3).
@safe
struct SignatureContext: ~Copyable {
    private let context: OpaquePointer

    init() throws(RSAKeyError) {
        guard let context = unsafe EVP_MD_CTX_new() else { throw .libraryFailure(call: "EVP_MD_CTX_new") }
        unsafe self.context = unsafe context
    }

    deinit {
        unsafe EVP_MD_CTX_free(context)
    }

    /// Returns `true` if the key's signature of this message is valid.
    ///
    /// The key is only used during the call.
    func verifies(_ signature: [UInt8], of message: [UInt8], by key: KeyHandle) throws(RSAKeyError) -> Bool {
        try unsafe key.withPointer { (key) throws(RSAKeyError) in
            let initialised = unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key)
            guard LibCrypto.isSuccess(initialised) else { throw .libraryFailure(call: "EVP_DigestVerifyInit") }
            let result = unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count)
            return LibCrypto.isSuccess(result)
        }
    }

    func sign(_ message: [UInt8], with key: KeyHandle) throws(RSAKeyError) -> [UInt8] {
        try unsafe key.withPointer { (key) throws(RSAKeyError) in
            let initialised = unsafe EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key)
            guard LibCrypto.isSuccess(initialised) else { throw .libraryFailure(call: "EVP_DigestSignInit") }
            var length = 0
            let measured = unsafe EVP_DigestSign(context, nil, &length, message, message.count)
            guard LibCrypto.isSuccess(measured) else { throw .libraryFailure(call: "EVP_DigestSign") }
            var signature = [UInt8](repeating: 0, count: length)
            let signed = unsafe EVP_DigestSign(context, &signature, &length, message, message.count)
            guard LibCrypto.isSuccess(signed) else { throw .libraryFailure(call: "EVP_DigestSign") }
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
