internal import Base
internal import Crypto
internal import HTTPServer

/// POST /token.
extension SandboxState {
    mutating func token(_ request: SandboxRequest, now: Timestamp) -> Outcome {
        var fault = settings.outage
        if fault == nil, settings.errorRate > 0, random.nextUnit() < settings.errorRate { fault = settings.error }
        if let fault, let outcome = immediateOutcome(of: fault) { return outcome }

        guard let clientID = request.field("client_id"), !clientID.isEmpty else { return refusal(.noClientID) }
        guard settings.clients.isEmpty || settings.clients.contains(clientID) else { return refusal(.clientNotFound) }
        guard !settings.appCheck.contains(clientID) else { return refusal(.appNotAuthentic) }
        if request.field("grant_type") == "authorization_code" {
            return exchangeCode(request, ofClient: clientID, fault: fault, now: now)
        }
        guard request.field("grant_type") == "refresh_token" else { return refusal(.unsupportedGrantType) }
        guard let token = request.field("refresh_token"), let index = indexByRefreshToken[token] else {
            return refusal(.unknownToken)
        }
        guard grants[index].clientID == clientID else { return refusal(.otherClientsToken) }
        if let refusal = refusalOfSecret(request, ofGrantAt: index) { return refusal }

        if grants[index].stalls { return .hang }
        if let prepared = grants[index].takeScript() {
            if let outcome = immediateOutcome(of: prepared) { return outcome }
            fault = prepared
        }
        let proof = checkProof(of: request, now: now)
        if let refusal = refusalOfKey(proof, ofGrantAt: index) { return refusal }
        guard !grants[index].isRevoked, !isInWave(grants[index]) else { return refusal(.revoked) }
        guard let successor = exchange(token, ofGrantAt: index) else { return refusal(.revoked) }
        let outcome = refreshed(index, successor: successor, fault: fault, now: now)
        return addingNonce(to: outcome, of: request, now: now)
    }

    /// Exchanges a token. Returns `nil` if the token is dead, and an inner `nil` if the token stays the same.
    private mutating func exchange(_ token: String, ofGrantAt index: Int) -> String?? {
        var chain = grants[index].refreshTokens
        let before = chain.live + chain.dead
        let use = chain.use(token, rotation: settings.rotation) { newRefreshToken() }
        grants[index].refreshTokens = chain
        switch use {
        case .refused: return nil
        case .kept: return .some(nil)
        case .rotated(let successor):
            for token in before where !chain.live.contains(token) && !chain.dead.contains(token) {
                indexByRefreshToken[token] = nil
            }
            indexByRefreshToken[successor] = index
            return successor
        }
    }

    mutating func refreshed(_ index: Int, successor: String?, fault: SandboxFault?, now: Timestamp) -> Outcome {
        let grant = grants[index]
        let lifetime = grant.lifetime ?? settings.lifetime
        let body: OrderedJSON = [
            "access_token": fault == .withoutAccessToken
                ? nil : .string(newAccessToken(of: index, lifetime: lifetime, now: now)),
            "expires_in": .integer(lifetime),
            "refresh_token": successor.map(OrderedJSON.string),
            "scope": .string(grant.scope),
            "token_type": "Bearer",
            "id_token": idToken(of: grant, now: now).map(OrderedJSON.string),
            "refresh_token_expires_in": settings.refreshTokenExpiresIn.map(OrderedJSON.integer),
        ]
        switch fault {
        case .lostAnswer:
            return .reply(.drop, label: SandboxFault.lostAnswer.label)
        case .withoutAccessToken:
            guard case .reply(let reply, _) = success(body) else { return .hang }
            return .reply(reply, label: SandboxFault.withoutAccessToken.label)
        default:
            grants[index].successes += 1
            return success(body)
        }
    }

    /// `true` if a wave of refusals includes this grant. The same seed and rate always select the same grants.
    private func isInWave(_ grant: SandboxGrant) -> Bool {
        guard settings.waveRate > 0 else { return false }
        let value = mixed(hash(grant.sub.utf8) ^ settings.seed)
        return Double(value >> 11) * 0x1p-53 < settings.waveRate
    }
}

/// The endpoints userinfo, tokeninfo and revoke.
extension SandboxState {
    func userinfo(_ request: SandboxRequest, now: Timestamp) -> Outcome {
        guard let token = request.bearer, let owner = owner(ofAccessToken: token, now: now) else {
            return refusal(request.isVersion2 ? Self.unauthenticated : Self.invalidCredentials)
        }
        let grant = grants[owner.index]
        let names = grant.name.split(separator: " ", maxSplits: 1).map(String.init)
        let email = grant.showsEmail ? OrderedJSON.string(grant.email) : nil
        return success([
            (request.isVersion2 ? "id" : "sub"): .string(grant.sub),
            "email": email,
            (request.isVersion2 ? "verified_email" : "email_verified"): email.map { _ in .bool(grant.emailIsVerified) },
            "name": .string(grant.name),
            "given_name": .string(names.first ?? grant.name),
            "family_name": names.count > 1 ? .string(names[1]) : nil,
            "hd": grant.hostedDomain.map(OrderedJSON.string),
            "picture": "https://lh3.googleusercontent.com/a/default-user=s96-c",
        ])
    }

    func tokeninfo(_ request: SandboxRequest, now: Timestamp) -> Outcome {
        guard let token = request.field("access_token"), let owner = owner(ofAccessToken: token, now: now) else {
            return refusal(.error(400, "invalid_token", "Invalid Value"))
        }
        let grant = grants[owner.index]
        let email = grant.showsEmail ? OrderedJSON.string(grant.email) : nil
        return success([
            "azp": .string(grant.clientID),
            "aud": .string(grant.clientID),
            "sub": .string(grant.sub),
            "scope": .string(grant.scope),
            "exp": .string(String(owner.expiry.milliseconds / 1000)),
            "expires_in": .string(String((owner.expiry - now).wholeMilliseconds / 1000)),
            "email": email,
            "email_verified": email.map { _ in .string(grant.emailIsVerified.description) },
            "access_type": "offline",
        ])
    }

    /// Ends every grant of the token's user, as Google does for all clients of a project.
    mutating func revoke(_ request: SandboxRequest, now: Timestamp) -> Outcome {
        let dead = FixedAnswer.error(400, "invalid_token", "Token expired or revoked")
        guard let token = request.field("token") else {
            return refusal(.error(400, "invalid_request", "Missing required parameter: token"))
        }
        guard let index = indexByRefreshToken[token] ?? owner(ofAccessToken: token, now: now)?.index,
            !grants[index].isRevoked, !grants[index].refreshTokens.dead.contains(token)
        else { return refusal(dead) }
        for index in indicesBySub[grants[index].sub] ?? [] { grants[index].isRevoked = true }
        return success([:])
    }

    private static var unauthenticated: FixedAnswer {
        let message =
            "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid "
            + "authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
        let error: OrderedJSON = ["code": 401, "message": .string(message), "status": "UNAUTHENTICATED"]
        let body: OrderedJSON = ["error": error]
        return FixedAnswer(401, body: Array(body.text.utf8))
    }

    private static var invalidCredentials: FixedAnswer { .error(401, "invalid_request", "Invalid Credentials") }
}

/// The format of tokens, and the lookup of an access token's owner.
extension SandboxState {
    /// Makes a new refresh token that looks like Google's.
    mutating func newRefreshToken() -> String {
        issued += 1
        return "1//0" + String(issued, radix: 36) + "-" + randomText(words: 6)
    }

    /// Makes a new nonce.
    mutating func newNonce() -> String {
        issued += 1
        return "\(String(issued, radix: 36)).\(randomText(words: 2))"
    }

    /// Makes a new code that looks like Google's.
    mutating func newCode() -> String {
        issued += 1
        return "4/0A" + String(issued, radix: 36) + "-" + randomText(words: 4)
    }

    /// Makes an access token that contains its owner and expiry, so that it does not have to be stored.
    mutating func newAccessToken(of index: Int, lifetime: Int64, now: Timestamp) -> String {
        issued += 1
        let expiry = now + .seconds(lifetime.clamped(to: -4_000_000_000...4_000_000_000))
        let content =
            [String(index, radix: 36), String(expiry.milliseconds, radix: 36), String(issued, radix: 36)]
            .joined(separator: "_") + "_" + randomText(words: 6)
        return "ya29.a0" + content + "_" + seal(content)
    }

    /// Makes the ID token of a grant with the scope `openid`. Its signature cannot be verified.
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

    /// Spreads a hash over all 64 bits. FNV-1a alone does not do so for short texts.
    func mixed(_ value: UInt64) -> UInt64 {
        SeededRandom(seed: value).nextBits()
    }
}
