internal import Base
internal import HTTPServer

/// POST /token.
extension SandboxState {
    mutating func token(_ request: SandboxRequest, now: Timestamp) -> Outcome {
        var fault = settings.outage
        if fault == nil, settings.errorRate > 0, random.nextUnit() < settings.errorRate { fault = settings.error }
        if let fault, let outcome = immediateOutcome(of: fault) { return outcome }

        guard let clientID = request.field("client_id"), !clientID.isEmpty else { return refusal(.noClientID) }
        guard settings.clients.isEmpty || settings.clients.contains(clientID) else { return refusal(.clientNotFound) }
        guard request.field("grant_type") == "refresh_token" else { return refusal(.unsupportedGrantType) }
        guard let token = request.field("refresh_token"), let index = indexByRefreshToken[token] else {
            return refusal(.unknownToken)
        }
        guard grants[index].clientID == clientID else { return refusal(.otherClientsToken) }

        if grants[index].stalls { return .hang }
        if let prepared = grants[index].takeScript() {
            if let outcome = immediateOutcome(of: prepared) { return outcome }
            fault = prepared
        }
        guard !grants[index].isRevoked, !isInWave(grants[index]) else { return refusal(.revoked) }
        guard let successor = exchange(token, ofGrantAt: index) else { return refusal(.revoked) }
        return refreshed(index, successor: successor, fault: fault, now: now)
    }

    /// Exchanges a token.
    ///
    /// Returns `nil` if the token is dead, and an inner `nil` if the token stays the same.
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

    private mutating func refreshed(_ index: Int, successor: String?, fault: SandboxFault?, now: Timestamp) -> Outcome {
        let grant = grants[index]
        let lifetime = grant.lifetime ?? settings.lifetime
        var members: [OrderedJSON.Member] = []
        if fault != .withoutAccessToken {
            members.append(.init(name: "access_token", value: .string(newAccessToken(index, lifetime, now: now))))
        }
        members.append(.init(name: "expires_in", value: .integer(lifetime)))
        if let successor { members.append(.init(name: "refresh_token", value: .string(successor))) }
        members.append(.init(name: "scope", value: .string(grant.scope)))
        members.append(.init(name: "token_type", value: "Bearer"))
        if let token = idToken(of: grant, now: now) { members.append(.init(name: "id_token", value: .string(token))) }
        if let span = settings.refreshTokenExpiresIn {
            members.append(.init(name: "refresh_token_expires_in", value: .integer(span)))
        }
        switch fault {
        case .lostAnswer:
            return .reply(.drop, label: SandboxFault.lostAnswer.label)
        case .withoutAccessToken:
            guard case .reply(let reply, _) = success(.object(members)) else { return .hang }
            return .reply(reply, label: SandboxFault.withoutAccessToken.label)
        default:
            grants[index].successes += 1
            return success(.object(members))
        }
    }

    /// `true` if a wave of refusals includes this grant.
    ///
    /// The same seed and rate always select the same grants.
    private func isInWave(_ grant: SandboxGrant) -> Bool {
        guard settings.waveRate > 0 else { return false }
        let value = mixed(hash(grant.sub.utf8) ^ settings.seed)
        return Double(value >> 11) * 0x1p-53 < settings.waveRate
    }
}
