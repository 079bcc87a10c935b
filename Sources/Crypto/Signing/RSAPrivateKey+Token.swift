package import Base

extension RSAPrivateKey {
    /// Makes a token signed with RS256, such as a service account presents to Google.
    package func signedToken(_ claims: JSONLine, keyID: String, type: String = "JWT") throws(CryptoError) -> Secret {
        var header = JSONLine()
        header.field("alg", "RS256")
        header.field("typ", type)
        header.field("kid", keyID)
        let signedBytes = CompactToken.signedBytes(header: header, claims: claims)
        return CompactToken.text(signedBytes: signedBytes, signature: try sign(signedBytes))
    }
}
