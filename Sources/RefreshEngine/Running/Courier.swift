import Clocks
import GoogleOAuth
import Secrets
import Store

/// Carries one claimed grant to Google and back: opens its token, asks, and seals what was answered.
struct Courier: Sendable {
    let endpoint: any TokenEndpoint
    let vault: TokenVault
    let time: any TimeSource
    let leaseNeededToSend: Duration
    let clientSecret: Secret?

    /// What a journey brought back, with what the log says of it.
    struct Report: Sendable {
        var finding: Finding
        var status: Int?
        var text: String?
        var latency: Duration?
    }

    func carry(_ flight: Flight) async -> Report {
        let grant = flight.grant
        let attempt = Attempt(
            grant: grant.id,
            clientID: grant.clientID,
            claim: flight.claim,
            generation: grant.generation
        )
        do throws(SealError) {
            if grant.revocationAskedAt != nil { return try await revoke(flight, attempt: attempt) }
            guard let token = try vault.openRefreshToken(of: grant) else {
                return Report(finding: Finding(attempt: attempt, answer: .nothingToSend))
            }
            return try await refresh(flight, with: token, attempt: attempt)
        } catch {
            return Report(finding: Finding(attempt: attempt, answer: .unreadable(error)), text: "\(error)")
        }
    }

    private func refresh(_ flight: Flight, with token: Secret, attempt: Attempt) async throws(SealError) -> Report {
        let client = OAuthClient(id: attempt.clientID, secret: clientSecret)
        let sentAt = time.sinceBoot
        let answer = await endpoint.refresh(token, client: client) { mayStillSend(flight) }
        let latency = time.sinceBoot - sentAt
        // An answer that is later than any deadline lay in its socket while the process stood still, who knows for how long:
        // its life is counted from the asking.
        let receivedAt = latency > leaseNeededToSend ? time.now + (.zero - latency) : time.now
        return Report(
            finding: Finding(
                attempt: attempt,
                answer: try seal(answer, sent: token, for: attempt.grant, at: receivedAt)
            ),
            status: answer.status,
            text: answer.text,
            latency: latency
        )
    }

    private func revoke(_ flight: Flight, attempt: Attempt) async throws(SealError) -> Report {
        let refreshToken = try vault.openRefreshToken(of: flight.grant)
        let accessToken = try vault.openAccessToken(of: flight.grant)
        guard let token = refreshToken ?? accessToken else {
            return Report(finding: Finding(attempt: attempt, answer: .revocation(failure: nil)))
        }
        let sentAt = time.sinceBoot
        let failure = await endpoint.revoke(token)
        return Report(
            finding: Finding(attempt: attempt, answer: .revocation(failure: failure)),
            latency: time.sinceBoot - sentAt
        )
    }

    /// Asked immediately before a request leaves: a lease that could run out before the answer is stored sends nothing.
    private func mayStillSend(_ flight: Flight) -> Bool {
        flight.leaseRemaining(at: time.sinceBoot) >= leaseNeededToSend
    }

    private func seal(
        _ answer: RefreshAnswer,
        sent: Secret,
        for id: GrantID,
        at now: Timestamp
    ) throws(SealError) -> Finding.Answer {
        switch answer.verdict {
        case .granted(let tokens):
            let dies = tokens.refreshTokenLifetime.map { now + $0 }
            return .granted(
                RefreshedTokens(
                    accessToken: Grant.AccessToken(
                        sealed: try vault.seal(accessToken: tokens.accessToken, for: id),
                        obtainedAt: now,
                        expiresAt: now + tokens.lifetime,
                        type: tokens.type
                    ),
                    rotated: try seal(rotated: tokens.rotated, sent: sent, dies: dies, for: id),
                    scope: tokens.scope,
                    refreshTokenExpiresAt: dies
                )
            )
        case .flawed(let code, let rotated):
            return .flawed(code: code, rotated: try seal(rotated: rotated, sent: sent, dies: nil, for: id))
        case let verdict:
            return .refused(verdict, retryAfter: answer.retryAfter)
        }
    }

    /// A server that repeats the refresh token it was sent has not rotated it.
    private func seal(
        rotated: Secret?,
        sent: Secret,
        dies: Timestamp?,
        for id: GrantID
    ) throws(SealError) -> Grant.RefreshToken? {
        guard let rotated, rotated != sent else { return nil }
        return try vault.seal(refreshToken: rotated, for: id, expiresAt: dies)
    }
}
