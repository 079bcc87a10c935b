internal import Base

/// A code that Google's SDK gave the app for its server.
struct SandboxCode: Sendable {
    /// The index of the grant that the user has given the server.
    let grant: Int
    /// `false` if the user had given it before, so that Google sends no refresh token again.
    let bringsRefreshToken: Bool
    var isSpent = false
}

/// The codes of apps for their server (https://developers.google.com/identity/sign-in/ios/offline-access).
extension SandboxState {
    /// Creates a grant of the server's client, and the code for it. The body has the members of a grant. With
    /// `"brings_refresh_token": false` the answer to the code has none.
    mutating func createCode(_ body: OrderedJSON, now: Timestamp) throws(ControlError) -> OrderedJSON {
        var members = try body.members(of: "the body")
        var bringsRefreshToken = true
        for (name, value) in members where name == "brings_refresh_token" {
            bringsRefreshToken = try value.bool(name)
        }
        members.removeAll { $0.name == "brings_refresh_token" }
        let index = grants.count
        _ = try createGrant(.object(members.map { OrderedJSON.Member(name: $0.name, value: $0.value) }), now: now)
        let code = newCode()
        codes[code] = SandboxCode(grant: index, bringsRefreshToken: bringsRefreshToken)
        return [
            "code": .string(code),
            "sub": .string(grants[index].sub),
            "email": .string(grants[index].email),
            "client_id": .string(grants[index].clientID),
            "scope": .string(grants[index].scope),
            "refresh_token": .string(grants[index].refreshTokens.newest),
        ]
    }

    /// Answers a request with a code.
    mutating func exchangeCode(
        _ request: SandboxRequest,
        ofClient clientID: String,
        fault: SandboxFault?,
        now: Timestamp
    ) -> Outcome {
        guard let text = request.field("code"), !text.isEmpty else {
            return refusal(.error(400, "invalid_request", "Missing required parameter: code"))
        }
        guard let code = codes[text] else {
            return refusal(.error(400, "invalid_grant", "Malformed auth code."))
        }
        if grants[code.grant].stalls { return .hang }
        var fault = fault
        if let prepared = grants[code.grant].takeScript() {
            if let outcome = immediateOutcome(of: prepared) { return outcome }
            fault = prepared
        }
        guard grants[code.grant].clientID == clientID else { return refusal(.otherClientsToken) }
        if let refusal = refusalOfSecret(request, ofGrantAt: code.grant) { return refusal }
        // The code comes from the SDK of a phone, and was not sent to an address.
        guard request.field("redirect_uri") == "" else {
            return refusal(.error(400, "redirect_uri_mismatch", "Bad Request"))
        }
        let proof = checkProof(of: request, now: now)
        if case .refused(let outcome) = proof { return outcome }
        guard !code.isSpent, !grants[code.grant].isRevoked else { return refusal(.unknownToken) }
        codes[text]?.isSpent = true
        let refreshToken = code.bringsRefreshToken ? grants[code.grant].refreshTokens.newest : nil
        if case .good(let key) = proof, code.bringsRefreshToken { grants[code.grant].boundTo = key }
        let outcome = refreshed(code.grant, successor: refreshToken, fault: fault, now: now)
        return addingNonce(to: outcome, of: request, now: now)
    }

    /// Returns the refusal of a request without the secret of a confidential client.
    func refusalOfSecret(_ request: SandboxRequest, ofGrantAt index: Int) -> Outcome? {
        guard let secret = grants[index].clientSecret else { return nil }
        switch request.field("client_secret") {
        case secret: return nil
        case nil, "": return refusal(.error(400, "invalid_request", "client_secret is missing."))
        default: return refusal(.error(401, "invalid_client", "Unauthorized"))
        }
    }
}
