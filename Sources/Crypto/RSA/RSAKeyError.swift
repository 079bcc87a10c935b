/// The reason why an RSA key cannot be used.
///
/// It never quotes the key.
package enum RSAKeyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The data is not an unencrypted private key in PEM.
    case unreadable
    case otherKind
    case size(bits: Int)
    case exponent
    case evenModulus
    case libraryFailure(call: String)

    package var description: String {
        switch self {
        case .unreadable: "it is not an unencrypted private key in PEM"
        case .otherKind: "it is not an RSA key"
        case .size(let bits):
            "it has \(bits) bits, not \(RSAPublicKey.sizes.lowerBound) to \(RSAPublicKey.sizes.upperBound)"
        case .exponent: "its exponent is not an odd number from 3 to 2^32"
        case .evenModulus: "its modulus is even"
        case .libraryFailure(let call): "\(call) failed"
        }
    }
}
