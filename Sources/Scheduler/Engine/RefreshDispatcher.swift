import Base
import Crypto
import GoogleOAuth
import Storage

/// Sends the requests of claimed grants, and hands the responses to the committer as they arrive.
struct RefreshDispatcher: Sendable {
    let endpoint: any Google
    let vault: TokenVault
    let time: any TimeSource
    let leaseNeededToSend: Duration
    let clientSecrets: ClientSecrets

    /// Sends the token requests of refreshes, and returns a closure for each request that cancels it.
    ///
    /// The committer gets a result for each refresh, from any thread, possibly before this returns.
    func send(_ refreshes: [InFlightRefresh], for committer: ResultCommitter) -> [(GrantID, @Sendable () -> Void)] {
        var sent: [(id: GrantID, lookup: AccountLookup?)] = []
        var requests: [RefreshSubmission] = []
        for refresh in refreshes {
            let token: Secret?
            do throws(CryptoError) {
                token = try vault.openRefreshToken(of: refresh.grant)
            } catch {
                committer.add(unopened(refresh, error), of: refresh)
                continue
            }
            guard let token else {
                committer.add(RefreshResult(attempt: refresh.attempt, answer: .nothingToSend), of: refresh)
                continue
            }
            let lookup = refresh.grant.needsAccountCheck ? AccountLookup() : nil
            requests.append(request(with: token, for: refresh, lookup: lookup, committer))
            sent.append((refresh.grant.id, lookup))
        }
        return zip(sent, endpoint.refresh(requests)).map { request, cancel in
            (
                request.id,
                {
                    cancel()
                    request.lookup?.cancel()
                }
            )
        }
    }

    private func request(
        with token: Secret,
        for refresh: InFlightRefresh,
        lookup: AccountLookup?,
        _ committer: ResultCommitter
    ) -> RefreshSubmission {
        let client = clientSecrets[refresh.grant.clientID]
        let credentials = OAuthClientCredentials(id: refresh.grant.clientID, secret: client?.secret)
        let secrets = [token] + [client?.secret].compactMap(\.self)
        let sentAt = time.sinceBoot
        return RefreshSubmission(token: token, client: credentials) {
            mayStillSend(for: refresh)
        } receive: { response in
            let latency = time.sinceBoot - sentAt
            // An answer later than any deadline waited in its socket for an unknown time while the process was
            // suspended: the token's lifetime is counted from the time of the request.
            let receivedAt = latency > leaseNeededToSend ? time.now - latency : time.now
            let add = { @Sendable (response: RawRefreshResponse) in
                committer.add(
                    PendingResult(refresh: refresh) { () throws(CryptoError) in
                        try RefreshResult(
                            of: refresh,
                            reading: .reading(response, sent: secrets),
                            to: token,
                            clientSecret: client?.fingerprint ?? .none,
                            receivedAt: receivedAt,
                            latency: latency,
                            sealingWith: vault
                        )
                    }
                )
            }
            guard let lookup else { return add(response) }
            lookup.run {
                let parsed = ParsedRefreshResponse.reading(response, sent: secrets)
                let mayLookUp = mayStillSend(for: refresh)
                add(.answer(await endpoint.checkAccount(of: parsed, for: refresh.grant, mayLookUp: mayLookUp)))
            }
        }
    }

    /// `false` if the lease could run out before the answer is stored: then no request is sent.
    private func mayStillSend(for refresh: InFlightRefresh) -> Bool {
        refresh.leaseRemaining(at: time.sinceBoot) >= leaseNeededToSend
    }

    /// Returns the result for a token that could not be opened.
    ///
    /// If another worker might have its key, the lease is given back and the grant stays as it is.
    private func unopened(_ refresh: InFlightRefresh, _ error: CryptoError) -> RefreshResult {
        let mayBeElsewhere = if case .unknownKey(let id) = error { vault.ring.reportMissing(id) } else { false }
        return RefreshResult(
            attempt: refresh.attempt,
            answer: mayBeElsewhere ? .failed(.notSent(code: "unknown_key"), retryAfter: nil) : .unreadable(error),
            text: "\(error)"
        )
    }

    /// Revokes a grant at Google after a disconnect, unless the lease could run out before the answer is stored.
    func revoke(_ refresh: InFlightRefresh) async -> RefreshResult {
        let token: Secret?
        do throws(CryptoError) {
            let refreshToken = try vault.openRefreshToken(of: refresh.grant)
            token = if let refreshToken { refreshToken } else { try vault.openAccessToken(of: refresh.grant) }
        } catch {
            return unopened(refresh, error)
        }
        guard let token else { return RefreshResult(attempt: refresh.attempt, answer: .revocation(failure: nil)) }
        let sentAt = time.sinceBoot
        let response = await endpoint.revoke(token) { mayStillSend(for: refresh) }
        let answer: RefreshResult.Answer =
            switch response {
            case .done: .revocation(failure: nil)
            case .failed(let failure): .revocation(failure: failure)
            case .notSent(let code): .failed(.notSent(code: code), retryAfter: nil)
            }
        return RefreshResult(attempt: refresh.attempt, answer: answer, latency: time.sinceBoot - sentAt)
    }
}

extension Grant {
    private static let identityScopes: Set<Substring> = [
        "openid", "email", "profile", "https://www.googleapis.com/auth/userinfo.email",
        "https://www.googleapis.com/auth/userinfo.profile",
    ]

    /// `true` until a refresh with the grant's refresh token has succeeded, if the account is known and can be looked
    /// up.
    ///
    /// Google does not name the account of an access token without an identity scope, so that the check would never
    /// end. An import can store such a grant, and the account is then the operator's statement.
    var needsAccountCheck: Bool {
        !isProven && owner.googleUserID != nil && !Self.identityScopes.isDisjoint(with: scope.split(separator: " "))
    }
}
