package import Base

/// Makes and checks the app's own tokens: JSON Web Tokens with HS256 (RFC 7519, RFC 7518 section 3.2).
package struct TokenSigner: Sendable {
    /// The length of the hash, which is the shortest allowed key (RFC 7518, section 3.2).
    package static let minimumSecretLength = 32
    static let maximumTokenLength = 8192
    private static let algorithm = "HS256"

    private let signingKey: MessageKey
    private let otherKeys: [MessageKey]

    /// Takes one secret, or two during a rotation: the first one signs, and both are accepted.
    package init(secrets: [Secret]) throws(TokenSignerError) {
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
    package func claims(of token: String, at now: Timestamp) throws(TokenRefusal) -> JSONValue {
        let claims = try signedClaims(of: token)
        try Self.checkTimes(of: claims, at: now)
        return claims
    }

    /// Returns the claims of a token that is signed with one of the secrets, whatever its times.
    ///
    /// Until the signature is verified, only the header is read.
    package func signedClaims(of token: String) throws(TokenRefusal) -> JSONValue {
        let token = try CompactToken(token, limit: Self.maximumTokenLength)
        try token.require(algorithm: Self.algorithm)
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

    /// Accepts the types of RFC 7519, section 5.1, and RFC 9068, section 2.1.
    private static func isKnownType(_ type: JSONValue?) -> Bool {
        guard let type else { return true }
        guard let name = type.string?.lowercased() else { return false }
        return name == "jwt" || name == "at+jwt"
    }
}

extension TokenSigner {
    /// The tolerated clock difference to other machines.
    private static let leeway = Duration.seconds(60)
    /// The tolerated lead of `iat`.
    ///
    /// It is larger than `leeway` because only `nbf` forbids use (RFC 7519, section 4.1.5): if a clock that was
    /// somewhat ahead is corrected, users whose tokens it made must not be signed out. A larger lead means a forged
    /// token or a broken clock, and such a token would outlive its lifetime.
    private static let issueLeeway = Duration.seconds(3600)

    /// Returns `true` if the claims are valid at this time.
    package static func areTimely(_ claims: JSONValue, at now: Timestamp) -> Bool {
        do throws(TokenRefusal) {
            try checkTimes(of: claims, at: now)
            return true
        } catch {
            return false
        }
    }

    static func checkTimes(of claims: JSONValue, at now: Timestamp) throws(TokenRefusal) {
        guard let expiry = claims["exp"]?.finiteNumber else { throw .noExpiry }
        guard Double(now.milliseconds) / 1000 < expiry else { throw .expired }
        for (name, leeway) in [("nbf", leeway), ("iat", issueLeeway)] {
            guard let claim = claims[name] else { continue }
            guard let start = claim.finiteNumber else { throw .malformed }
            guard start <= Double((now + leeway).milliseconds) / 1000 else { throw .notYetValid }
        }
    }
}

extension JSONValue {
    /// The value of a NumericDate, which may have a fraction (RFC 7519, section 2).
    fileprivate var finiteNumber: Double? {
        guard case .number(let text) = self, let number = Double(text), number.isFinite else { return nil }
        return number
    }
}

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

/// The reason why a token is rejected.
package enum TokenRefusal: Error, Hashable, Sendable {
    /// The token is too long, or is not three parts of base64url with a JSON object in the first two.
    case malformed
    /// The token requires another algorithm, another type, or an unknown extension.
    case unsupportedAlgorithm
    case badSignature
    /// The signature is valid, but `exp` is missing or not a number.
    case noExpiry
    /// The signature is valid, but the token has expired.
    case expired
    /// The signature is valid, but the token is not valid yet.
    case notYetValid
}
