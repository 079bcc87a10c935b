package import JSON

/// A compact RS256 token of somebody else's, read but not believed until ``verifies(with:)`` says so.
package struct SignedToken: Sendable {
    /// The name of the key that signed it, as it says itself.
    package let keyID: String?
    /// What it claims; it may say anything as long as nobody has checked the signature.
    package let claims: JSONValue

    private let signedBytes: [UInt8]
    private let signature: [UInt8]

    /// Takes the text apart; `limit` is in bytes.
    package init(_ text: String, limit: Int) throws(TokenRefusal) {
        let token = try CompactToken(text, limit: limit)
        try token.demand(algorithm: "RS256")
        claims = try token.claims()
        keyID = token.header["kid"]?.string
        signedBytes = token.signedBytes
        signature = token.signature
    }

    package func verifies(with key: RSAPublicKey) -> Bool {
        key.verifies(signature: signature, of: signedBytes)
    }
}
