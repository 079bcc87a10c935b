private import CCrypto

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

    /// A smaller key can be broken. A check with a larger one takes long enough to be abused.
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
        guard let first = magnitude.first, first < 0x80 else { return tagged(0x02, [0] + magnitude) }
        return tagged(0x02, magnitude)
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
