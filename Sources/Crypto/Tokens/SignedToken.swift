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

    /// Parses the text.
    ///
    /// `limit` is in bytes.
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

/// The parts of a signed token in its compact form (RFC 7515, section 7.1).
///
/// None of them is verified yet.
struct CompactToken {
    let header: JSONValue
    /// The bytes that the signature covers: the first two parts as they appear in the text.
    let signedBytes: [UInt8]
    let payload: [UInt8]
    let signature: [UInt8]

    /// Parses the text.
    ///
    /// `limit` is in bytes.
    init(_ text: String, limit: Int) throws(TokenRefusal) {
        let bytes = Array(text.utf8)
        guard bytes.count <= limit else { throw .malformed }
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[2].isEmpty,
            let header = Base64URL.decode(utf8: parts[0]).flatMap(JSONValue.object(in:)),
            let payload = Base64URL.decode(utf8: parts[1]),
            let signature = Base64URL.decode(utf8: parts[2])
        else { throw .malformed }
        self.header = header
        self.payload = payload
        self.signature = signature
        signedBytes = Array(bytes[..<parts[1].endIndex])
    }

    /// Throws unless the token's algorithm is exactly this one.
    ///
    /// The verifier chooses the algorithm, never the token: this rejects `none`, and a public key used as a shared
    /// secret (RFC 8725, section 3.1). Critical extensions are not supported (RFC 7515, section 4.1.11).
    func require(algorithm: String) throws(TokenRefusal) {
        guard header["alg"] == .string(algorithm), header["crit"] == nil else { throw .unsupportedAlgorithm }
    }

    /// Returns the claims, for callers that have checked the signature or will check it.
    func claims() throws(TokenRefusal) -> JSONValue {
        guard let claims = JSONValue.object(in: payload) else { throw .malformed }
        return claims
    }

    /// Returns the encoded header and claims, joined by a dot, as they are signed.
    static func signedBytes(header: JSONLine, claims: JSONLine) -> [UInt8] {
        Base64URL.encoded(header.bytes) + [UInt8(ascii: ".")] + Base64URL.encoded(claims.bytes)
    }

    /// Returns the whole token.
    static func text(signedBytes: [UInt8], signature: [UInt8]) -> Secret {
        Secret(utf8: signedBytes + [UInt8(ascii: ".")] + Base64URL.encoded(signature))
    }
}

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
