import Base
import Crypto
import GoogleOAuth
import Storage

/// Sends the requests of claimed grants, and hands each refresh to the committer when its response arrives.
struct RefreshDispatcher: Sendable {
    let endpoint: any Google
    let vault: TokenVault
    let time: any TimeSource
    let leaseNeededToSend: Duration
    let clientSecrets: ClientSecrets

    /// Sends the token requests of refreshes.
    ///
    /// The committer gets each refresh, from any thread, possibly before this returns.
    func send(_ refreshes: [Refresh], for committer: ResultCommitter) {
        var sent: [Refresh] = []
        var submissions: [RefreshSubmission] = []
        for refresh in refreshes {
            guard let refreshToken = refresh.claim.refreshToken else {
                committer.add(refresh, with: RefreshResult(claim: refresh.claim, answer: .withoutRefreshToken))
                continue
            }
            let token: Secret
            let bindingKey: BindingKey?
            do throws(CryptoError) {
                token = try vault.open(refreshToken: refreshToken, for: refresh.claim.grant)
                bindingKey = try vault.bindingKey(of: refreshToken)
            } catch {
                committer.add(refresh, with: unopened(refresh, error))
                continue
            }
            submissions.append(submission(with: token, boundTo: bindingKey, for: refresh, committer: committer))
            sent.append(refresh)
        }
        for (refresh, cancel) in zip(sent, endpoint.refresh(submissions)) { refresh.onCancel(cancel) }
    }

    private func submission(
        with token: Secret,
        boundTo bindingKey: BindingKey?,
        for refresh: Refresh,
        committer: ResultCommitter
    ) -> RefreshSubmission {
        let clientID = refresh.grant.clientID
        let request = SentRequest(token: token, clientSecret: clientSecrets[clientID], sentAt: time.sinceBoot)
        refresh.didSend(request)
        let credentials = OAuthClientCredentials(id: clientID, secret: request.clientSecret?.secret)
        return RefreshSubmission(token: token, client: credentials, bindingKey: bindingKey) {
            mayStillSend(for: refresh)
        } willAnswerChallenge: {
            refresh.willAnswerChallenge()
        } receive: { response in
            receive(response, to: request, of: refresh, for: committer)
        }
    }

    private func receive(
        _ response: RefreshResponse,
        to request: SentRequest,
        of refresh: Refresh,
        for committer: ResultCommitter
    ) {
        let latency = time.sinceBoot - request.sentAt
        // An answer later than any deadline waited in its socket for an unknown time while the process was suspended:
        // the token's lifetime is counted from the time of the request.
        let receivedAt = latency > leaseNeededToSend ? time.now - latency : time.now
        let received = ReceivedResponse(
            response: response,
            request: request,
            receivedAt: receivedAt,
            latency: latency
        )
        guard refresh.grant.needsAccountCheck else {
            refresh.didReceive(received)
            committer.add(refresh)
            return
        }
        refresh.runAccountCheck {
            let checked = await endpoint.checkAccount(
                of: .reading(response, sent: request.secrets),
                for: refresh.grant,
                mayLookUp: mayStillSend(for: refresh)
            )
            refresh.didReceive(received.with(checked))
            committer.add(refresh)
        }
    }

    /// `false` if the lease could run out before the answer is stored: then no request is sent.
    private func mayStillSend(for refresh: Refresh) -> Bool {
        refresh.leaseRemaining(at: time.sinceBoot) >= leaseNeededToSend
    }

    /// Returns the result for a token that could not be opened.
    ///
    /// If another worker might have its key, the lease is given back and the grant stays as it is.
    private func unopened(_ refresh: Refresh, _ error: CryptoError) -> RefreshResult {
        let mayBeElsewhere = if case .unknownKey(let id) = error { vault.ring.reportMissing(id) } else { false }
        return RefreshResult(
            claim: refresh.claim,
            answer: mayBeElsewhere ? .failed(.notSent(code: "unknown_key"), retryAfter: nil) : .unreadable(error),
            text: "\(error)"
        )
    }

    /// Revokes a grant at Google after a disconnect, unless the lease could run out before the answer is stored.
    func revoke(_ refresh: Refresh) async -> RefreshResult {
        let token: Secret?
        do throws(CryptoError) {
            if let refreshToken = refresh.claim.refreshToken {
                token = try vault.open(refreshToken: refreshToken, for: refresh.claim.grant)
            } else {
                token = try vault.openAccessToken(of: refresh.grant)
            }
        } catch {
            return unopened(refresh, error)
        }
        guard let token else { return RefreshResult(claim: refresh.claim, answer: .revocation(failure: nil)) }
        let sentAt = time.sinceBoot
        let response = await endpoint.revoke(token) { mayStillSend(for: refresh) }
        let answer: RefreshResult.Answer =
            switch response {
            case .done: .revocation(failure: nil)
            case .failed(let failure): .revocation(failure: failure)
            case .notSent(let code): .failed(.notSent(code: code), retryAfter: nil)
            }
        return RefreshResult(claim: refresh.claim, answer: answer, latency: time.sinceBoot - sentAt)
    }
}
