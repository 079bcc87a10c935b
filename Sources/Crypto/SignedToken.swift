package import Base

/// A compact token from another party, signed with RS256 or ES256.
///
/// It is not trusted until ``verifies(with:)`` returns `true`.
package struct SignedToken: Sendable {
    /// The id of the signing key, according to the token.
    package let keyID: String?
    /// The claims.
    ///
    /// They can be forged until the signature is checked.
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

/// The parts of a signed token in its compact form (RFC 7515, section 7.1).
///
/// None of them is verified yet.
struct CompactToken: Sendable {
    let header: JSONValue
    /// The bytes that the signature covers: the first two parts as they appear in the text.
    let signedBytes: [UInt8]
    let payload: [UInt8]
    let signature: [UInt8]

    /// Parses the text.
    ///
    /// `limit` is in bytes.
    init(_ text: String, limit: Int) throws(CryptoError) {
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

    /// Throws unless the token's algorithm is one of these.
    ///
    /// The verifier chooses the algorithm, never the token: this rejects `none`, and a public key used as a shared
    /// secret (RFC 8725, section 3.1). Critical extensions are not supported (RFC 7515, section 4.1.11).
    func require(algorithmIn algorithms: [String]) throws(CryptoError) {
        guard let algorithm = header["alg"]?.string, algorithms.contains(algorithm), header["crit"] == nil else {
            throw .unsupportedAlgorithm
        }
    }

    /// Returns the claims, for callers that have checked the signature or will check it.
    func claims() throws(CryptoError) -> JSONValue {
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
    fileprivate static func isKnownType(_ type: JSONValue?) -> Bool {
        guard let type else { return true }
        guard let name = type.string?.lowercased() else { return false }
        return ["jwt", "at+jwt", "application/at+jwt"].contains(name)
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
        do throws(CryptoError) {
            try checkTimes(of: claims, at: now)
            return true
        } catch {
            return false
        }
    }

    static func checkTimes(of claims: JSONValue, at now: Timestamp) throws(CryptoError) {
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
    /// The value of a NumericDate, which can have a fraction (RFC 7519, section 2).
    fileprivate var finiteNumber: Double? {
        guard case .number(let text) = self, let number = Double(text), number.isFinite else { return nil }
        return number
    }
}
