package import Base

/// Makes and checks the app's own tokens: JSON Web Tokens with HS256 (RFC 7519, RFC 7518 section 3.2).
package struct TokenSigner: Sendable {
    /// The length of the hash, which is the shortest allowed key (RFC 7518, section 3.2).
    package static let minimumSecretLength = 32
    package static let maximumTokenLength = 8192
    private static let algorithm = "HS256"

    private let signingKey: MessageKey
    private let otherKeys: [MessageKey]

    /// Takes one secret, or two during a rotation: the first one signs, and both are accepted.
    package init(secrets: [Secret]) throws(CryptoError) {
        guard let first = secrets.first, secrets.count <= 2 else { throw .secretCount(secrets.count) }
        for (index, secret) in secrets.enumerated() where secret.count < Self.minimumSecretLength {
            throw .shortSecret(position: index + 1, byteCount: secret.count)
        }
        signingKey = MessageKey(first)
        otherKeys = secrets.dropFirst().map { MessageKey($0) }
    }

    /// Signs claims as a compact token.
    ///
    /// The caller must set `exp`. A token without it is always rejected.
    package func sign(_ claims: JSONLine) -> Secret {
        var header = JSONLine()
        header.field("alg", Self.algorithm)
        header.field("typ", "JWT")
        let signedBytes = CompactToken.signedBytes(header: header, claims: claims)
        return CompactToken.text(signedBytes: signedBytes, signature: signingKey.authenticate(signedBytes))
    }

    /// Returns the claims of a token that is signed with one of the secrets and valid now.
    package func claims(of token: String, at now: Timestamp) throws(CryptoError) -> JSONValue {
        let claims = try signedClaims(of: token)
        try Self.checkTimes(of: claims, at: now)
        return claims
    }

    /// Returns the claims of a token that is signed with one of the secrets, whatever its times.
    ///
    /// Until the signature is verified, only the header is read.
    package func signedClaims(of token: String) throws(CryptoError) -> JSONValue {
        let token = try CompactToken(token, limit: Self.maximumTokenLength)
        try token.require(algorithmIn: [Self.algorithm])
        guard Self.isKnownType(token.header["typ"]) else { throw .unsupportedAlgorithm }
        guard isSigned(token) else { throw .badSignature }
        return try token.claims()
    }

    /// Compares with every key, even after a match, so that the duration does not reveal which key matched.
    private func isSigned(_ token: CompactToken) -> Bool {
        var isSigned = false
        for key in [signingKey] + otherKeys {
            let matches = ConstantTime.areEqual(key.authenticate(token.signedBytes), token.signature)
            isSigned = isSigned || matches
        }
        return isSigned
    }

    /// Accepts the types of RFC 7519, section 5.1, and RFC 9068, section 4.
    static func isKnownType(_ type: JSONValue?) -> Bool {
        guard let type else { return true }
        guard let name = type.string?.lowercased() else { return false }
        return ["jwt", "at+jwt", "application/at+jwt"].contains(name)
    }
}
