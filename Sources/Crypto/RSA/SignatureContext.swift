private import CCrypto

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
