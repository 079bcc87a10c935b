import Base
package import Crypto
package import Storage

/// The form of a result that the store did not take: one sealed value.
///
/// The tokens in it are sealed already. The whole value is sealed again, so that only a process with the key ring can
/// change its grant, its generation or its answer.
extension RefreshResult {
    private static let version = 1

    /// Seals a result that brings tokens, and returns `nil` for any other.
    package func sealed(with vault: TokenVault) throws(CryptoError) -> SealedSecret? {
        guard let spilledText else { return nil }
        return try vault.seal(spilledResult: Secret(utf8: spilledText))
    }

    /// Opens a sealed result.
    package static func open(_ sealed: SealedSecret, with vault: TokenVault) throws -> RefreshResult {
        let text = try vault.open(spilledResult: sealed).reveal()
        guard let object = JSONValue.object(in: text.utf8), object["version"]?.integer == Int64(version),
            let result = try result(from: object)
        else {
            throw FileError("A result in it was written by another version of refresh-worker.")
        }
        return result
    }

    // MARK: Writing

    private var spilledText: [UInt8]? {
        guard answer.containsTokens else { return nil }
        var line = JSONLine()
        line.field("version", Self.version)
        line.field("grant", claim.grant.rawValue)
        line.field("client", claim.clientID)
        line.field("claim", claim.number)
        line.field("generation", claim.generation)
        if let lastAttemptAt = claim.lastAttemptAt { line.field("last_attempt_at", lastAttemptAt.milliseconds) }
        if let sent = claim.refreshToken { line.object("sent") { Self.write(sent, into: &$0) } }
        if secretFingerprint != .none { line.field("client_secret", Int64(secretFingerprint.rawValue)) }
        switch answer {
        case .granted(let tokens):
            line.object("access") { Self.write(tokens.accessToken, into: &$0) }
            if let rotated = tokens.rotated { line.object("rotated") { Self.write(rotated, into: &$0) } }
            if let scope = tokens.scope { line.field("scope", scope) }
            if let end = tokens.refreshTokenExpiresAt { line.field("refresh_expires_at", end.milliseconds) }
            if let timeout = tokens.refreshTokenTimeout { line.milliseconds("refresh_timeout_ms", timeout) }
            if let digest = tokens.digest { line.field("access_digest", Base64URL.encode(digest)) }
        case .flawed(let code, let rotated?):
            line.field("flaw", code)
            line.object("rotated") { Self.write(rotated, into: &$0) }
        case .flawed, .failed, .withoutRefreshToken, .unreadable, .revocation: return nil
        }
        return line.bytes
    }

    private static func write(_ token: Grant.AccessToken, into line: inout JSONLine) {
        line.field("sealed", Base64URL.encode(token.sealed.bytes))
        line.field("obtained_at", token.obtainedAt.milliseconds)
        line.field("expires_at", token.expiresAt.milliseconds)
        line.field("type", token.type)
    }

    private static func write(_ token: Grant.RefreshToken, into line: inout JSONLine) {
        line.field("sealed", Base64URL.encode(token.sealed.bytes))
        if let marks = token.marks {
            line.field("prefix", Base64URL.encode(marks.prefix.bytes))
            line.field("digest", Base64URL.encode(marks.digest.bytes))
        }
        SpilledBindingKey(token.bindingKeyID).write(into: &line)
        if let end = token.expiresAt { line.field("expires_at", end.milliseconds) }
        if let consent = token.consentedAt { line.field("consented_at", consent.milliseconds) }
        if token.isExpiryNoticed { line.field("expiry_noticed", true) }
    }

    // MARK: Reading

    private static func result(from object: JSONValue) throws(CryptoError) -> RefreshResult? {
        guard let grant = object["grant"]?.integer, let client = object["client"]?.string,
            let number = object["claim"]?.integer, let generation = object["generation"]?.integer
        else { return nil }
        let claim = RefreshClaim(
            grant: GrantID(rawValue: grant),
            clientID: client,
            number: number,
            generation: generation,
            lastAttemptAt: object["last_attempt_at"]?.timestamp,
            refreshToken: try refreshToken(from: object["sent"])
        )
        let secretFingerprint = ClientSecretFingerprint(stored: object["client_secret"])
        let rotated = try refreshToken(from: object["rotated"])
        // A rotated token that cannot be read must not look like an answer without one.
        guard rotated != nil || object["rotated"] == nil else { return nil }
        if let flaw = object["flaw"]?.string {
            guard let rotated else { return nil }
            let answer = Answer.flawed(code: flaw, rotated: rotated)
            return RefreshResult(claim: claim, answer: answer, secretFingerprint: secretFingerprint)
        }
        guard let access = try accessToken(from: object["access"]) else { return nil }
        let tokens = RefreshedTokens(
            accessToken: access,
            rotated: rotated,
            scope: object["scope"]?.string,
            refreshTokenExpiresAt: object["refresh_expires_at"]?.timestamp,
            refreshTokenTimeout: object["refresh_timeout_ms"]?.integer.map { .milliseconds($0) },
            digest: digest(from: object["access_digest"])
        )
        return RefreshResult(claim: claim, answer: .granted(tokens), secretFingerprint: secretFingerprint)
    }

    private static func accessToken(from object: JSONValue?) throws(CryptoError) -> Grant.AccessToken? {
        guard let object, let sealed = bytes(object["sealed"]), let obtainedAt = object["obtained_at"]?.timestamp,
            let expiresAt = object["expires_at"]?.timestamp, let type = object["type"]?.string
        else { return nil }
        return Grant.AccessToken(
            sealed: try SealedSecret(bytes: sealed),
            obtainedAt: obtainedAt,
            expiresAt: expiresAt,
            type: type
        )
    }

    private static func refreshToken(from object: JSONValue?) throws(CryptoError) -> Grant.RefreshToken? {
        guard let object, let sealed = bytes(object["sealed"]) else { return nil }
        guard let bindingKey = SpilledBindingKey(in: object) else { throw .notSealed }
        return Grant.RefreshToken(
            sealed: try SealedSecret(bytes: sealed),
            marks: TokenMarks(prefix: bytes(object["prefix"]), digest: bytes(object["digest"])),
            bindingKeyID: bindingKey.id,
            expiresAt: object["expires_at"]?.timestamp,
            consentedAt: object["consented_at"]?.timestamp,
            isExpiryNoticed: object["expiry_noticed"] == .bool(true)
        )
    }

    private static func digest(from value: JSONValue?) -> [UInt8]? {
        guard let digest = bytes(value), digest.count == IssuedTokens.digestLength else { return nil }
        return digest
    }

    private static func bytes(_ value: JSONValue?) -> [UInt8]? {
        guard let text = value?.string else { return nil }
        return Base64URL.decode(text)
    }
}
