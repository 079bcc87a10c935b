/// The reason why a token is rejected.
package enum TokenRefusal: Error, Hashable, Sendable {
    /// The token is too long, or is not three parts of base64url with a JSON object in the first two.
    case malformed
    /// The token requires another algorithm, another type, or an unknown extension.
    case unsupportedAlgorithm
    case badSignature
    /// The signature is valid, but `exp` is missing or not a number.
    case noExpiry
    /// The signature is valid, but the token has expired.
    case expired
    /// The signature is valid, but the token is not valid yet.
    case notYetValid
}
