internal import Base

/// The endpoints userinfo, tokeninfo and revoke.
extension SandboxState {
    func userinfo(_ request: SandboxRequest, now: Timestamp) -> Outcome {
        guard let token = request.bearer, let owner = owner(ofAccessToken: token, now: now) else {
            return refusal(request.naming == .version2 ? Self.unauthenticated : Self.invalidCredentials)
        }
        let grant = grants[owner.index]
        let isVersion2 = request.naming == .version2
        var members = [OrderedJSON.Member(name: isVersion2 ? "id" : "sub", value: .string(grant.sub))]
        if grant.showsEmail {
            members.append(.init(name: "email", value: .string(grant.email)))
            let verified = isVersion2 ? "verified_email" : "email_verified"
            members.append(.init(name: verified, value: .bool(grant.emailIsVerified)))
        }
        let names = grant.name.split(separator: " ", maxSplits: 1).map(String.init)
        members.append(.init(name: "name", value: .string(grant.name)))
        members.append(.init(name: "given_name", value: .string(names.first ?? grant.name)))
        if names.count > 1 { members.append(.init(name: "family_name", value: .string(names[1]))) }
        if let domain = grant.hostedDomain { members.append(.init(name: "hd", value: .string(domain))) }
        members.append(.init(name: "picture", value: "https://lh3.googleusercontent.com/a/default-user=s96-c"))
        return success(.object(members))
    }

    func tokeninfo(_ request: SandboxRequest, now: Timestamp) -> Outcome {
        guard let token = request.field("access_token"), let owner = owner(ofAccessToken: token, now: now) else {
            return refusal(.error(400, "invalid_token", "Invalid Value"))
        }
        let grant = grants[owner.index]
        var members: [OrderedJSON.Member] = [
            .init(name: "azp", value: .string(grant.clientID)),
            .init(name: "aud", value: .string(grant.clientID)),
            .init(name: "sub", value: .string(grant.sub)),
            .init(name: "scope", value: .string(grant.scope)),
            .init(name: "exp", value: .string(String(owner.expiry.milliseconds / 1000))),
            .init(name: "expires_in", value: .string(String((owner.expiry - now).wholeMilliseconds / 1000))),
        ]
        if grant.showsEmail {
            members.append(.init(name: "email", value: .string(grant.email)))
            members.append(.init(name: "email_verified", value: .string(grant.emailIsVerified.description)))
        }
        members.append(.init(name: "access_type", value: "offline"))
        return success(.object(members))
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
