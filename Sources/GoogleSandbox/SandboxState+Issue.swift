internal import Clocks
internal import Secrets

/// Tokens: how they look, and whose an access token is.
extension SandboxState {
    /// A refresh token that looks like Google's and was never given out.
    mutating func newRefreshToken() -> String {
        issued += 1
        return "1//0" + String(issued, radix: 36) + "-" + noise(words: 6)
    }

    /// An access token that says in itself whose it is and how long it lives, so that none need be kept.
    mutating func newAccessToken(_ place: Int, _ lifetime: Int64, now: Timestamp) -> String {
        issued += 1
        let expiry = now + .seconds(lifetime.clamped(to: -4_000_000_000...4_000_000_000))
        let content =
            [String(place, radix: 36), String(expiry.milliseconds, radix: 36), String(issued, radix: 36)]
            .joined(separator: "_") + "_" + noise(words: 6)
        return "ya29.a0" + content + "_" + seal(content)
    }

    /// The ID token of a grant that has the scope `openid`, without a signature that could be checked.
    func idToken(of grant: Grant, now: Timestamp) -> String? {
        guard grant.scope.split(separator: " ").contains("openid") else { return nil }
        let issuedAt = now.milliseconds / 1000
        let claims: OrderedJSON = [
            "iss": "https://accounts.google.com", "aud": .string(grant.clientID), "sub": .string(grant.sub),
            "iat": .integer(issuedAt), "exp": .integer(issuedAt + 3600),
        ]
        return [#"{"alg":"RS256","typ":"JWT"}"#, claims.text, "sandbox"]
            .map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
    }

    /// The grant and the expiry of an access token that is good now.
    func owner(ofAccessToken token: String, now: Timestamp) -> (place: Int, expiry: Timestamp)? {
        guard token.hasPrefix("ya29.a0"), let end = token.lastIndex(of: "_") else { return nil }
        let content = token[..<end].dropFirst("ya29.a0".count)
        guard token[token.index(after: end)...] == seal(content) else { return nil }
        let parts = content.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == 4, let place = Int(parts[0], radix: 36), let milliseconds = Int64(parts[1], radix: 36),
            grants.indices.contains(place), !grants[place].isRevoked
        else { return nil }
        let expiry = Timestamp(milliseconds: milliseconds)
        return expiry > now ? (place, expiry) : nil
    }

    private func seal(_ content: some StringProtocol) -> String {
        String(mixed(hash(content.utf8) ^ tokenKey), radix: 36)
    }

    private func noise(words: Int) -> String {
        (0..<words).map { _ in String(random.nextBits(), radix: 36) }.joined()
    }

    /// FNV-1a (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv).
    func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    /// Spreads a hash over all 64 bits, which FNV-1a alone does not do for short texts.
    func mixed(_ value: UInt64) -> UInt64 {
        SeededRandom(seed: value).nextBits()
    }
}
