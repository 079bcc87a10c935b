private import CCrypto

package struct RSAPrivateKey: Sendable {
    private let handle: KeyHandle

    /// Reads an unencrypted PKCS #8 or PKCS #1 key of a safe size.
    package init(pem: Secret) throws(CryptoError) {
        try self.init(KeyHandle(pem: pem))
    }

    package static func generate(bits: Int32 = 2048) throws(CryptoError) -> RSAPrivateKey {
        try RSAPrivateKey(.generate(bits: bits))
    }

    private init(_ handle: KeyHandle) throws(CryptoError) {
        guard handle.isRSA else { throw .otherKind }
        guard PublicKey.rsaSizes.contains(handle.bits) else { throw .size(bits: handle.bits) }
        self.handle = handle
    }

    func sign(_ bytes: [UInt8]) throws(CryptoError) -> [UInt8] { try handle.sign(bytes) }

    /// Returns the key as PKCS #8 in PEM.
    package func pem() throws(CryptoError) -> Secret { try handle.pem() }

    /// The two numbers of a public key, big end first.
    package struct PublicNumbers: Sendable {
        package let modulus: [UInt8]
        package let exponent: [UInt8]
    }

    package func publicNumbers() throws(CryptoError) -> PublicNumbers {
        PublicNumbers(
            modulus: try handle.number(OSSL_PKEY_PARAM_RSA_N),
            exponent: try handle.number(OSSL_PKEY_PARAM_RSA_E)
        )
    }
}
