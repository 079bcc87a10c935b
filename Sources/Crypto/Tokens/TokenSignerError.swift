/// The reason why secrets cannot sign tokens.
///
/// It never quotes a secret.
package enum TokenSignerError: Error, Hashable, Sendable, CustomStringConvertible {
    case secretCount(Int)
    /// The position counts from one.
    case shortSecret(position: Int, byteCount: Int)

    package var description: String {
        switch self {
        case .secretCount(let count):
            "one secret signs tokens, or two while one is being rotated, not \(count)"
        case .shortSecret(let position, let byteCount):
            "secret \(position) has \(byteCount) bytes: a secret that signs tokens has at least "
                + "\(TokenSigner.minimumSecretLength)"
        }
    }
}
