private import CCrypto

/// An RSA public key, for checking signatures of other parties.
package struct RSAPublicKey: Sendable {
    /// A smaller key can be broken; a check with a larger one takes long enough to be abused.
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
    package func verifies(signature: [UInt8], of bytes: [UInt8]) -> Bool {
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
