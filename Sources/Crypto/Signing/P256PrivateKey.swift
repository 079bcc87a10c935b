private import Base
private import CCrypto

/// A private key of P-256, which signs with ES256 (RFC 7518, section 3.4).
///
/// A key ring has only its scalar, a big-endian number of 32 bytes. The public key follows from it.
package struct P256PrivateKey: Sendable {
    /// The length of the scalar, of a coordinate, and of each of the two numbers in a signature.
    static let numberLength = 32

    /// The order of the group, big-endian (SEC 2, section 2.4.2). A scalar is at least one and below it.
    private static let order: [UInt8] = [
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84,
        0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ]

    private let handle: KeyHandle

    /// Takes a big-endian scalar.
    init(scalar: Secret) throws(CryptoError) {
        guard Self.isPrivateKey(scalar) else { throw .scalar }
        handle = try KeyHandle(p256: scalar)
    }

    /// Draws the scalar of a new key (FIPS 186-5, appendix A.2.2: by testing candidates).
    static func randomScalar() throws(CryptoError) -> Secret {
        while true {
            let candidate = try Secret.random(byteCount: numberLength)
            if isPrivateKey(candidate) { return candidate }
        }
    }

    private static func isPrivateKey(_ scalar: Secret) -> Bool {
        scalar.withBytes { span in
            guard span.byteCount == numberLength else { return false }
            var isZero = true
            for offset in 0..<numberLength where span.byte(at: offset) != 0 { isZero = false }
            guard !isZero else { return false }
            for offset in 0..<numberLength {
                let byte = span.byte(at: offset)
                guard byte == order[offset] else { return byte < order[offset] }
            }
            return false
        }
    }

    /// Returns the signature of a message in the form that a token has: the numbers r and s in fixed length.
    func sign(_ message: [UInt8]) throws(CryptoError) -> [UInt8] {
        try KeyHandle.numbers(ofSignature: try handle.sign(message), length: Self.numberLength)
    }

    /// The coordinates of the public key, big-endian and in fixed length.
    package struct PublicPoint: Hashable, Sendable {
        package let x: [UInt8]
        package let y: [UInt8]
    }

    func publicPoint() throws(CryptoError) -> PublicPoint {
        PublicPoint(
            x: Self.padded(try handle.number(OSSL_PKEY_PARAM_EC_PUB_X)),
            y: Self.padded(try handle.number(OSSL_PKEY_PARAM_EC_PUB_Y))
        )
    }

    private static func padded(_ number: [UInt8]) -> [UInt8] {
        [UInt8](repeating: 0, count: numberLength - number.count) + number
    }
}
