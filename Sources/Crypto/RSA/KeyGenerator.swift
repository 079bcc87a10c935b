private import CCrypto

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
