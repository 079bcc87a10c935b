internal import Base
internal import Crypto
internal import HTTPServer

/// The proofs of requests to the token endpoint, as Google documents them
/// (https://developers.google.com/identity/protocols/oauth2/resources/dpop-adoption).
///
/// The texts of the refusals, and the limit of a minute, are guesses.
extension SandboxState {
    private static let tolerableAge: Int64 = 60
    /// At this number all remembered ids are forgotten, so that the memory of the sandbox stays small.
    private static let maximumProofIDs = 100_000

    enum ProofCheck {
        /// The request has no proof.
        case missing
        /// The request has a good one, of the key with this thumbprint.
        case good(String)
        case refused(Outcome)
    }

    /// Checks the proof of a request, if it has one.
    mutating func checkProof(of request: SandboxRequest, now: Timestamp) -> ProofCheck {
        guard let text = request.proof else { return .missing }
        func refused(_ reason: String) -> ProofCheck { .refused(refusal(.error(400, "invalid_dpop_proof", reason))) }
        guard let proof = SandboxProof(text) else { return refused("The DPoP proof is malformed.") }
        guard proof.method == "POST" else { return refused("htm does not match the request.") }
        guard let host = request.host, let url = proof.url, url.hasSuffix("://\(host)/token") else {
            return refused("htu does not match the request.")
        }
        let seconds = (now + settings.clockAhead).milliseconds / 1000
        guard let issuedAt = proof.issuedAt, abs(seconds - issuedAt) <= Self.tolerableAge else {
            return refused("iat is too far from the current time.")
        }
        guard let id = proof.id, !id.isEmpty else { return refused("jti is missing.") }
        if let code = request.field("code"), id != Base64URL.encode(Digest.sha256(Array(code.utf8))) {
            return refused("jti is not the hash of the code.")
        }
        let key = "\(proof.thumbprint) \(id)"
        guard !usedProofIDs.contains(key) else { return refused("jti was used before.") }
        let scope = nonceScope(of: request)
        guard let nonce = proof.nonce, nonces.isGood(nonce, for: scope, at: now) else {
            return .refused(challenge(for: scope, now: now))
        }
        if usedProofIDs.count >= Self.maximumProofIDs { usedProofIDs = [] }
        usedProofIDs.insert(key)
        statistics.proofs += 1
        statistics.lastProof = text
        return .good(proof.thumbprint)
    }

    /// Returns the refusal of a refresh whose token is bound to a key that the request does not prove.
    func refusalOfKey(_ check: ProofCheck, ofGrantAt index: Int) -> Outcome? {
        switch (grants[index].boundTo, check) {
        case (_, .refused(let outcome)): outcome
        case (nil, _): nil
        case (_?, .missing):
            refusal(.error(400, "invalid_dpop_proof", "The token is bound to a key: a proof is missing."))
        case (let key?, .good(let proved)):
            key == proved ? nil : refusal(.error(400, "invalid_dpop_proof", "The token is bound to another key."))
        }
    }

    /// Adds the nonce for the next proof to the answer, if the request had a proof.
    mutating func addingNonce(to outcome: Outcome, of request: SandboxRequest, now: Timestamp) -> Outcome {
        guard request.proof != nil, case .reply(.respond(var response), let label) = outcome else { return outcome }
        response.headers.append(("DPoP-Nonce", nextNonce(for: nonceScope(of: request), now: now)))
        return .reply(.respond(response), label: label)
    }

    private mutating func challenge(for scope: SandboxNonces.Scope, now: Timestamp) -> Outcome {
        var answer = FixedAnswer.error(400, "use_dpop_nonce", "Authorization server requires nonce in DPoP proof")
        answer.headers = [.init(name: "DPoP-Nonce", value: nextNonce(for: scope, now: now))]
        return refusal(answer)
    }

    private mutating func nextNonce(for scope: SandboxNonces.Scope, now: Timestamp) -> String {
        // A copy, because `newNonce` changes this state too.
        var nonces = nonces
        let nonce = nonces.next(for: scope, lifetime: settings.nonceLifetime, at: now) { newNonce() }
        self.nonces = nonces
        return nonce
    }

    private func nonceScope(of request: SandboxRequest) -> SandboxNonces.Scope {
        SandboxNonces.Scope(
            clientID: request.field("client_id") ?? "",
            grantType: request.field("grant_type") ?? ""
        )
    }
}
