/// Why a secret cannot be sealed or opened, a key cannot sign, or a token is rejected.
///
/// It never quotes a key, a secret or a token.
package enum CryptoError: Error, Hashable, Sendable, CustomStringConvertible {
    // MARK: Sealed secrets

    /// The key ring lacks the key that sealed the value.
    case unknownKey(KeyID)
    /// The value was altered, belongs to another row or column, or was sealed by another key of the same id.
    case damaged(KeyID)
    /// The bytes do not have the form of a sealed value.
    case notSealed

    // MARK: Keys

    /// The data is not an unencrypted private key in PEM.
    case unreadable
    case otherKind
    case size(bits: Int)
    case exponent
    case evenModulus
    /// The coordinates are not a point of P-256.
    case point
    /// The number is not a private key of P-256.
    case scalar
    /// The secrets that sign the app's tokens are too few or too many.
    case secretCount(Int)
    /// The position counts from one.
    case shortSecret(position: Int, byteCount: Int)

    // MARK: Signed tokens

    /// The token is too long, or is not three parts of base64url with a JSON object in the first two.
    case malformed
    /// The token requires another algorithm, another type, or an unknown extension.
    case unsupportedAlgorithm
    case badSignature
    /// The signature is valid, but `exp` is missing or not a number.
    case noExpiry
    case expired
    case notYetValid

    // MARK: The library

    /// An OpenSSL call failed that should succeed, with a code from its error queue.
    case libraryFailure(call: String, code: UInt)
    /// A call that has to do with signatures failed.
    case signingFailure(call: String)

    /// `true` if one sealed value cannot be opened, which says nothing about others.
    package var isOfOneValue: Bool {
        switch self {
        case .unknownKey, .damaged, .notSealed: true
        default: false
        }
    }

    package var description: String {
        switch self {
        case .unknownKey(let id): "the key ring has no key \(id)"
        case .damaged(let id): "the value sealed by key \(id) is damaged, or belongs to another row or another key"
        case .notSealed: "the bytes are not a sealed value"
        case .unreadable: "it is not an unencrypted private key in PEM"
        case .otherKind: "it is not an RSA key"
        case .size(let bits):
            "it has \(bits) bits, not \(PublicKey.rsaSizes.lowerBound) to \(PublicKey.rsaSizes.upperBound)"
        case .exponent: "its exponent is not an odd number from 3 to 2^32"
        case .evenModulus: "its modulus is even"
        case .point: "its coordinates are not a point of P-256"
        case .scalar: "it is not a private key of P-256"
        case .secretCount(let count):
            "one secret signs tokens, or two while one is being rotated, not \(count)"
        case .shortSecret(let position, let byteCount):
            "secret \(position) has \(byteCount) bytes: a secret that signs tokens has at least "
                + "\(TokenSigner.minimumSecretLength)"
        case .malformed: "it is not a signed token"
        case .unsupportedAlgorithm: "the token is not signed by the expected algorithm"
        case .badSignature: "the token's signature is wrong"
        case .noExpiry: "the token has no expiry"
        case .expired: "the token has expired"
        case .notYetValid: "the token is not valid yet"
        case .libraryFailure(let call, let code): "OpenSSL's \(call) failed (error 0x\(String(code, radix: 16)))"
        case .signingFailure(let call): "\(call) failed"
        }
    }
}
