package import Clocks
package import JSON

/// Makes and checks the app's own tokens: JSON Web Tokens by HS256 (RFC 7519, RFC 7518 section 3.2).
package struct TokenSigner: Sendable {
    /// A key as long as the hash (RFC 7518, section 3.2).
    package static let leastSecretLength = 32
    static let greatestTokenLength = 8192
    private static let algorithm = "HS256"

    private let signingKey: MessageKey
    private let otherKeys: [MessageKey]

    /// Takes one secret, or two while one is being rotated: the first signs, all are believed.
    package init(secrets: [Secret]) throws(TokenSignerError) {
        guard let first = secrets.first, secrets.count <= 2 else { throw .secretCount(secrets.count) }
        for (index, secret) in secrets.enumerated() where secret.count < Self.leastSecretLength {
            throw .shortSecret(position: index + 1, byteCount: secret.count)
        }
        signingKey = MessageKey(first)
        otherKeys = secrets.dropFirst().map { MessageKey($0) }
    }

    /// Signs claims into a compact token; whoever gives them sees to `exp`, without which no check succeeds.
    package func sign(_ claims: JSONLine) -> Secret {
        var header = JSONLine()
        header.field("alg", Self.algorithm)
        header.field("typ", "JWT")
        let signedBytes = CompactToken.signedBytes(header: header, claims: claims)
        return CompactToken.text(signedBytes: signedBytes, signature: signingKey.authenticate(signedBytes))
    }

    /// The claims of a token that one of the secrets has signed and that is valid now.
    package func claims(of token: String, at now: Timestamp) throws(TokenRefusal) -> JSONValue {
        let claims = try signedClaims(of: token)
        try Self.checkTimes(of: claims, at: now)
        return claims
    }

    /// The claims of a token that one of the secrets has signed, whatever its times.
    ///
    /// Before the signature is known to be good, nothing but the header is looked at.
    package func signedClaims(of token: String) throws(TokenRefusal) -> JSONValue {
        let token = try CompactToken(token, limit: Self.greatestTokenLength)
        try token.demand(algorithm: Self.algorithm)
        guard Self.isKnownType(token.header["typ"]) else { throw .unsupportedAlgorithm }
        guard isSigned(token) else { throw .badSignature }
        return try token.claims()
    }

    /// Compares with every key, also after one has matched, so that the time does not tell which.
    private func isSigned(_ token: CompactToken) -> Bool {
        var isSigned = false
        for key in [signingKey] + otherKeys {
            let matches = ConstantTime.areEqual(key.authenticate(token.signedBytes), token.signature)
            isSigned = isSigned || matches
        }
        return isSigned
    }

    /// The types of RFC 7519, section 5.1, and RFC 9068, section 2.1.
    private static func isKnownType(_ type: JSONValue?) -> Bool {
        guard let type else { return true }
        guard let name = type.string?.lowercased() else { return false }
        return name == "jwt" || name == "at+jwt"
    }
}
