import Base
import Crypto
import GoogleOAuth
import Storage
import Synchronization

/// Sends the requests of claimed grants, and hands the responses to the committer as they arrive.
struct RefreshDispatcher: Sendable {
    let endpoint: any TokenEndpoint
    let vault: TokenVault
    let time: any TimeSource
    let leaseNeededToSend: Duration
    let clientSecrets: ClientSecrets

    /// Sends the token requests of refreshes; returns a closure for each request that cancels it.
    ///
    /// The committer gets a result for each refresh, from any thread, possibly before this returns.
    func send(
        _ refreshes: [InFlightRefresh],
        for committer: ResultCommitter
    ) -> [(GrantID, @Sendable () -> Void)] {
        var sent: [(id: GrantID, lookup: AccountLookup?)] = []
        var requests: [RefreshSubmission] = []
        for refresh in refreshes {
            let token: Secret?
            do throws(SealError) {
                token = try vault.openRefreshToken(of: refresh.grant)
            } catch {
                committer.add(.read(refresh, unopened(refresh, error)))
                continue
            }
            guard let token else {
                let result = RefreshResult(attempt: refresh.attempt, answer: .nothingToSend)
                committer.add(.read(refresh, result))
                continue
            }
            let lookup = AccountCheck.isNeeded(for: refresh.grant) ? AccountLookup() : nil
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
        let sentAt = time.sinceBoot
        return RefreshSubmission(token: token, client: credentials) {
            mayStillSend(for: refresh)
        } receive: { response in
            let latency = time.sinceBoot - sentAt
            // An answer later than any deadline waited in its socket for an unknown time while the process was
            // suspended: the token's lifetime is counted from the time of the request.
            let receivedAt = latency > leaseNeededToSend ? time.now + (.zero - latency) : time.now
            let received = ReceivedResponse(
                refresh: refresh,
                sent: token,
                client: client,
                response: response,
                receivedAt: receivedAt,
                latency: latency
            )
            guard let lookup else { return committer.add(.received(received)) }
            lookup.run { [received] in
                let check = AccountCheck(endpoint: endpoint)
                let mayLookUp = mayStillSend(for: refresh)
                let checked = await check.checked(received.parsed, for: refresh.grant, mayLookUp: mayLookUp)
                var received = received
                received.response = .answer(checked)
                committer.add(.received(received))
            }
        }
    }

    /// `false` if the lease could run out before the answer is stored: then no request is sent.
    private func mayStillSend(for refresh: InFlightRefresh) -> Bool {
        refresh.leaseRemaining(at: time.sinceBoot) >= leaseNeededToSend
    }

    /// Returns the result for a token that could not be opened.
    ///
    /// If another worker may have its key, the lease is given back and the grant stays as it is.
    private func unopened(_ refresh: InFlightRefresh, _ error: SealError) -> RefreshResult {
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
        do throws(SealError) {
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

/// The secrets of confidential clients, by client id; a reload of the configuration replaces them.
final class ClientSecrets: Sendable {
    struct Entry: Sendable {
        let secret: Secret
        let fingerprint: ClientSecretFingerprint
    }

    private let entries: Mutex<[String: Entry]>

    init(_ secrets: [String: Secret]) {
        entries = Mutex(Self.entries(of: secrets))
    }

    subscript(clientID: String) -> Entry? { entries.withLock { $0[clientID] } }

    func replace(with secrets: [String: Secret]) {
        let replacement = Self.entries(of: secrets)
        entries.withLock { $0 = replacement }
    }

    private static func entries(of secrets: [String: Secret]) -> [String: Entry] {
        Dictionary(
            uniqueKeysWithValues: secrets.map { id, secret in
                (id, Entry(secret: secret, fingerprint: ClientSecretFingerprint(of: secret, clientID: id)))
            }
        )
    }
}

/// A digest of a client secret, by which workers see if they send the same one.
///
/// Each worker has its own secrets, and the answers for a client id count for all workers. So a refusal of a request
/// with another secret than the last success never ends a grant.
///
/// Four bytes are enough for that, and too few to find the secret: Google's have more than 100 random bits.
struct ClientSecretFingerprint: Hashable, Sendable {
    /// The fingerprint of a public client, which does not have a secret.
    static let none = ClientSecretFingerprint(rawValue: 0)

    let rawValue: UInt32

    init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    init(of secret: Secret, clientID: String) {
        let digest = Digest.sha256(Array("\(clientID):\(secret.reveal())".utf8))
        rawValue = digest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Reads a stored fingerprint; a missing one stands for a public client.
    init(stored value: JSONValue?) {
        self = value?.integer.flatMap { UInt32(exactly: $0) }.map(ClientSecretFingerprint.init(rawValue:)) ?? .none
    }
}
