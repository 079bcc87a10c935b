package import Base

/// A compact RS256 token from another party.
///
/// It is not trusted until ``verifies(with:)`` returns `true`.
package struct SignedToken: Sendable {
    /// The id of the signing key, according to the token.
    package let keyID: String?
    /// The claims.
    ///
    /// They can be forged until the signature is checked.
    package let claims: JSONValue

    private let signedBytes: [UInt8]
    private let signature: [UInt8]

    /// Parses the text; `limit` is in bytes.
    package init(_ text: String, limit: Int) throws(TokenRefusal) {
        let token = try CompactToken(text, limit: limit)
        try token.require(algorithm: "RS256")
        claims = try token.claims()
        keyID = token.header["kid"]?.string
        signedBytes = token.signedBytes
        signature = token.signature
    }

    package func verifies(with key: RSAPublicKey) -> Bool {
        key.verifies(signature: signature, of: signedBytes)
    }
}
