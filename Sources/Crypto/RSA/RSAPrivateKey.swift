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
    package func sign(_ bytes: [UInt8]) throws(RSAKeyError) -> [UInt8] {
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
