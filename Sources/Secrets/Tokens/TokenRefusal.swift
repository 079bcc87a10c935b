/// Why a token is not believed.
package enum TokenRefusal: Error, Hashable, Sendable {
    /// It is not three parts of base64url with a JSON object in the first two, or is too long.
    case malformed
    /// It asks to be checked by another algorithm, as another type, or by an extension that is not known.
    case unsupportedAlgorithm
    case badSignature
    /// It is well signed but says no time, or none that is a number, at which it ends.
    case noExpiry
    /// It is well signed and was good once.
    case expired
    /// It is well signed and begins later than now.
    case notYetValid
}
