package import Base

/// A token signed with RS256 and our own key, such as a service account presents to Google.
package struct SignedAssertion: Sendable {
    /// The compact token.
    package let token: Secret

    package init(_ claims: JSONLine, keyID: String, key: RSAPrivateKey, type: String = "JWT") throws(RSAKeyError) {
        var header = JSONLine()
        header.field("alg", "RS256")
        header.field("typ", type)
        header.field("kid", keyID)
        let signedBytes = CompactToken.signedBytes(header: header, claims: claims)
        token = CompactToken.text(signedBytes: signedBytes, signature: try key.sign(signedBytes))
    }
}
