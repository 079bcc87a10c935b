private import CCrypto

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
