import Base
import Crypto
import GoogleOAuth
import Storage

/// Sends the requests of claimed grants: opens their tokens, calls Google, then reads and seals the answers.
struct RefreshDispatcher: Sendable {
    let endpoint: any TokenEndpoint
    let vault: TokenVault
    let time: any TimeSource
    let leaseNeededToSend: Duration
    let clientSecrets: ClientSecrets

    /// The result of one request, with the fields for its log line.
    ///
    /// It is shared on its way from the committer to the log, because copies of results are costly.
    final class Report: Sendable {
        let result: RefreshResult
        let status: Int?
        let text: String?
        let latency: Duration?

        init(result: RefreshResult, status: Int? = nil, text: String? = nil, latency: Duration? = nil) {
            self.result = result
            self.status = status
            self.text = text
            self.latency = latency
        }
    }

    /// Sends the token requests of refreshes; returns a closure for each request that cancels it.
    ///
    /// `receive` is called once for each refresh with its answer, on any thread, possibly before this returns.
    func send(
        _ refreshes: [InFlightRefresh],
        receive: @escaping @Sendable (PendingResult) -> Void
    ) -> [(GrantID, @Sendable () -> Void)] {
        var ids: [GrantID] = []
        var requests: [RefreshSubmission] = []
        var lookups: [AccountLookup?] = []
        for refresh in refreshes {
            let lookup = AccountCheck.isNeeded(for: refresh.grant) ? AccountLookup() : nil
            guard let request = makeRequest(of: refresh, lookup: lookup, receive: receive) else { continue }
            ids.append(refresh.grant.id)
            requests.append(request)
            lookups.append(lookup)
        }
        return zip(zip(ids, lookups), endpoint.refresh(requests)).map { request, cancel in
            let (id, lookup) = request
            guard let lookup else { return (id, cancel) }
            return (
                id,
                {
                    cancel()
                    lookup.cancel()
                }
            )
        }
    }

    private func makeRequest(
        of refresh: InFlightRefresh,
        lookup: AccountLookup?,
        receive: @escaping @Sendable (PendingResult) -> Void
    ) -> RefreshSubmission? {
        let attempt = refresh.attempt
        let token: Secret?
        do throws(SealError) {
            token = try vault.openRefreshToken(of: refresh.grant)
        } catch {
            receive(PendingResult(refresh, with: unopened(attempt, error)))
            return nil
        }
        guard let token else {
            receive(
                PendingResult(refresh, with: Report(result: RefreshResult(attempt: attempt, answer: .nothingToSend)))
            )
            return nil
        }
        let clientSecret = clientSecrets[attempt.clientID]
        let client = OAuthClientCredentials(id: attempt.clientID, secret: clientSecret?.secret)
        let fingerprint = clientSecret?.fingerprint ?? .none
        let secrets = [token] + [client.secret].compactMap(\.self)
        let sentAt = time.sinceBoot
        return RefreshSubmission(token: token, client: client) {
            // A request is not sent if its lease could run out before the answer is stored.
            refresh.leaseRemaining(at: time.sinceBoot) >= leaseNeededToSend
        } receive: { reply in
            let latency = time.sinceBoot - sentAt
            // An answer later than any deadline waited in its socket for an unknown time while the process was
            // suspended: the token's lifetime is counted from the time of the request.
            let receivedAt = latency > leaseNeededToSend ? time.now + (.zero - latency) : time.now
            let deliver = { @Sendable (reply: RawRefreshResponse) in
                receive(
                    PendingResult(refresh) { () throws(SealError) in
                        try report(
                            ParsedRefreshResponse.reading(reply, sent: secrets),
                            to: token,
                            with: fingerprint,
                            for: attempt,
                            at: receivedAt,
                            latency: latency
                        )
                    }
                )
            }
            guard let lookup else { return deliver(reply) }
            lookup.run {
                // No further request is sent if the lease could run out before the answer is stored.
                let mayLookUp = refresh.leaseRemaining(at: time.sinceBoot) >= leaseNeededToSend
                let answer = ParsedRefreshResponse.reading(reply, sent: secrets)
                let check = AccountCheck(endpoint: endpoint)
                deliver(.answer(await check.checked(answer, for: refresh.grant, mayLookUp: mayLookUp)))
            }
        }
    }

    private func report(
        _ answer: ParsedRefreshResponse,
        to sent: Secret,
        with clientSecret: ClientSecretFingerprint,
        for attempt: RefreshAttempt,
        at receivedAt: Timestamp,
        latency: Duration
    ) throws(SealError) -> Report {
        Report(
            result: RefreshResult(
                attempt: attempt,
                answer: try seal(answer, sent: sent, for: attempt.grant, at: receivedAt),
                clientSecret: clientSecret
            ),
            status: answer.status,
            text: answer.text,
            latency: latency
        )
    }

    /// Reports a token that could not be opened.
    ///
    /// If another worker may have its key, the lease is given back and the grant stays as it is.
    private func unopened(_ attempt: RefreshAttempt, _ error: SealError) -> Report {
        guard case .unknownKey(let id) = error, vault.ring.reportMissing(id) else { return .unreadable(attempt, error) }
        let verdict = RefreshVerdict.notSent(code: "unknown_key")
        return Report(
            result: RefreshResult(attempt: attempt, answer: .failed(verdict, retryAfter: nil)),
            text: "\(error)"
        )
    }

    /// Revokes a grant at Google after a disconnect, unless the lease could run out before the answer is stored.
    func revoke(_ refresh: InFlightRefresh) async -> Report {
        let attempt = refresh.attempt
        let token: Secret?
        do throws(SealError) {
            let refreshToken = try vault.openRefreshToken(of: refresh.grant)
            token = if let refreshToken { refreshToken } else { try vault.openAccessToken(of: refresh.grant) }
        } catch {
            return unopened(attempt, error)
        }
        guard let token else {
            return Report(result: RefreshResult(attempt: attempt, answer: .revocation(failure: nil)))
        }
        let sentAt = time.sinceBoot
        let reply = await endpoint.revoke(token) {
            refresh.leaseRemaining(at: time.sinceBoot) >= leaseNeededToSend
        }
        let answer: RefreshResult.Answer =
            switch reply {
            case .done: .revocation(failure: nil)
            case .failed(let failure): .revocation(failure: failure)
            case .notSent(let code): .failed(.notSent(code: code), retryAfter: nil)
            }
        return Report(result: RefreshResult(attempt: attempt, answer: answer), latency: time.sinceBoot - sentAt)
    }

    private func seal(
        _ answer: ParsedRefreshResponse,
        sent: Secret,
        for id: GrantID,
        at now: Timestamp
    ) throws(SealError) -> RefreshResult.Answer {
        switch answer.verdict {
        case .granted(let tokens):
            let expiresAt = tokens.refreshTokenLifetime.map { now + $0 }
            return .granted(
                RefreshedTokens(
                    accessToken: Grant.AccessToken(
                        sealed: try vault.seal(accessToken: tokens.accessToken, for: id),
                        obtainedAt: now,
                        expiresAt: now + tokens.lifetime,
                        type: tokens.type
                    ),
                    rotated: try seal(rotated: tokens.rotated, sent: sent, expiresAt: expiresAt, for: id),
                    scope: tokens.scope,
                    refreshTokenExpiresAt: expiresAt,
                    digest: IssuedTokens.digest(of: tokens.accessToken)
                )
            )
        case .flawed(let code, let rotated):
            return .flawed(code: code, rotated: try seal(rotated: rotated, sent: sent, expiresAt: nil, for: id))
        case let verdict:
            return .failed(verdict, retryAfter: answer.retryAfter)
        }
    }

    /// Seals a rotated refresh token.
    ///
    /// A server that returns the refresh token it was sent has not rotated it.
    private func seal(
        rotated: Secret?,
        sent: Secret,
        expiresAt: Timestamp?,
        for id: GrantID
    ) throws(SealError) -> Grant.RefreshToken? {
        guard let rotated, rotated != sent else { return nil }
        return try vault.seal(refreshToken: rotated, for: id, expiresAt: expiresAt)
    }
}

extension RefreshDispatcher.Report {
    fileprivate static func unreadable(_ attempt: RefreshAttempt, _ error: SealError) -> RefreshDispatcher.Report {
        RefreshDispatcher.Report(result: RefreshResult(attempt: attempt, answer: .unreadable(error)), text: "\(error)")
    }
}
