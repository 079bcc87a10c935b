internal import Base
internal import Crypto

/// The format of tokens, and the lookup of an access token's owner.
extension SandboxState {
    /// Makes a new refresh token that looks like Google's.
    mutating func newRefreshToken() -> String {
        issued += 1
        return "1//0" + String(issued, radix: 36) + "-" + randomText(words: 6)
    }

    /// Makes an access token that contains its owner and expiry, so that it does not have to be stored.
    mutating func newAccessToken(_ index: Int, _ lifetime: Int64, now: Timestamp) -> String {
        issued += 1
        let expiry = now + .seconds(lifetime.clamped(to: -4_000_000_000...4_000_000_000))
        let content =
            [String(index, radix: 36), String(expiry.milliseconds, radix: 36), String(issued, radix: 36)]
            .joined(separator: "_") + "_" + randomText(words: 6)
        return "ya29.a0" + content + "_" + seal(content)
    }

    /// Makes the ID token of a grant with the scope `openid`.
    ///
    /// Its signature cannot be verified.
    func idToken(of grant: SandboxGrant, now: Timestamp) -> String? {
        guard grant.scope.split(separator: " ").contains("openid") else { return nil }
        let issuedAt = now.milliseconds / 1000
        let claims: OrderedJSON = [
            "iss": "https://accounts.google.com", "aud": .string(grant.clientID), "sub": .string(grant.sub),
            "iat": .integer(issuedAt), "exp": .integer(issuedAt + 3600),
        ]
        return [#"{"alg":"RS256","typ":"JWT"}"#, claims.text, "sandbox"]
            .map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
    }

    /// Returns the grant and the expiry of a valid access token.
    func owner(ofAccessToken token: String, now: Timestamp) -> (index: Int, expiry: Timestamp)? {
        guard token.hasPrefix("ya29.a0"), let end = token.lastIndex(of: "_") else { return nil }
        let content = token[..<end].dropFirst("ya29.a0".count)
        guard token[token.index(after: end)...] == seal(content) else { return nil }
        let parts = content.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == 4, let index = Int(parts[0], radix: 36), let milliseconds = Int64(parts[1], radix: 36),
            grants.indices.contains(index), !grants[index].isRevoked
        else { return nil }
        let expiry = Timestamp(milliseconds: milliseconds)
        return expiry > now ? (index, expiry) : nil
    }

    private func seal(_ content: some StringProtocol) -> String {
        String(mixed(hash(content.utf8) ^ tokenKey), radix: 36)
    }

    private func randomText(words: Int) -> String {
        (0..<words).map { _ in String(random.nextBits(), radix: 36) }.joined()
    }

    /// FNV-1a (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv).
    func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    /// Spreads a hash over all 64 bits.
    ///
    /// FNV-1a alone does not do so for short texts.
    func mixed(_ value: UInt64) -> UInt64 {
        SeededRandom(seed: value).nextBits()
    }
}
