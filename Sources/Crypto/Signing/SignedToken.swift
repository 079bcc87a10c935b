package import Base

/// A compact token from another party, signed with RS256 or ES256.
///
/// It is not trusted until ``verifies(with:)`` returns `true`.
package struct SignedToken: Sendable {
    /// The id of the signing key, according to the token.
    package let keyID: String?
    /// The claims. They can be forged until the signature is checked.
    package let claims: JSONValue

    private let token: CompactToken

    /// Parses the text.
    ///
    /// `limit` is in bytes.
    package init(_ text: String, limit: Int = TokenSigner.maximumTokenLength) throws(CryptoError) {
        token = try CompactToken(text, limit: limit)
        try token.require(algorithmIn: PublicKey.Algorithm.allCases.map(\.rawValue))
        claims = try token.claims()
        keyID = token.header["kid"]?.string
    }

    /// Returns `true` if the key has signed the token, with the algorithm of the key.
    package func verifies(with key: PublicKey) -> Bool {
        token.header["alg"] == .string(key.algorithm.rawValue)
            && key.verifies(signature: token.signature, of: token.signedBytes)
    }

    /// The SHA-256 of what the signature covers, which names the token even if it is signed in another way.
    package var digest: [UInt8] { Digest.sha256(token.signedBytes) }

    /// Throws unless the token is of a type that names a user, and valid now.
    ///
    /// An issuer can sign tokens of other types with the same keys, such as events (RFC 8725, section 3.11).
    package func checkUse(at now: Timestamp) throws(CryptoError) {
        guard TokenSigner.isKnownType(token.header["typ"]) else { throw .unsupportedAlgorithm }
        try TokenSigner.checkTimes(of: claims, at: now)
    }
}
