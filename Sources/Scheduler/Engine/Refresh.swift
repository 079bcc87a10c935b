import Base
import Crypto
import GoogleOAuth
import Storage
import Synchronization

/// The refresh of one grant that this worker has claimed, until its result is committed.
final class InFlightRefresh: Sendable {
    let grant: Grant
    let attempt: RefreshAttempt
    /// `true` if a caller asked for the refresh before it was due.
    let isForced: Bool
    /// `true` if its answer must be stored with the client's health, because the breaker is not closed or the endpoint
    /// fails.
    let needsHealth: Bool
    /// The end of the lease by this machine's boot clock; it is never later than the stored one, because the clock is
    /// read before the lease is requested.
    private let leaseEnd: Mutex<BootInstant>

    init(grant: Grant, claim: Int64, isForced: Bool, needsHealth: Bool = true, leaseEnd: BootInstant) {
        self.grant = grant
        attempt = RefreshAttempt(
            grant: grant.id,
            clientID: grant.clientID,
            claim: claim,
            generation: grant.generation,
            lastAttemptAt: grant.lastAttemptAt,
            refreshToken: grant.refreshToken,
            followsUnfinishedClaim: grant.lease?.followsUnfinishedClaim ?? false
        )
        self.isForced = isForced
        self.needsHealth = needsHealth
        self.leaseEnd = Mutex(leaseEnd)
    }

    /// `true` if a request to the token endpoint is needed: not for a revocation, and not without a refresh token.
    var needsTokenRequest: Bool { grant.refreshToken != nil && grant.revocationAskedAt == nil }

    func leaseRenewed(until instant: BootInstant) {
        leaseEnd.withLock { $0 = max($0, instant) }
    }

    func leaseRemaining(at instant: BootInstant) -> Duration {
        leaseEnd.withLock { $0 } - instant
    }
}

/// A result on its way to the committer.
enum PendingResult: Sendable {
    /// A response as received; a rotated token in it has no other copy.
    case received(ReceivedResponse)
    /// A response that was read, or the result of a refresh that needed none.
    case read(InFlightRefresh, RefreshResult)

    var refresh: InFlightRefresh {
        switch self {
        case .received(let response): response.refresh
        case .read(let refresh, _): refresh
        }
    }

    /// Reads the response and seals its tokens; after a failure it can be tried again.
    func read(sealingWith vault: TokenVault) throws(SealError) -> RefreshResult {
        switch self {
        case .received(let response): try response.read(sealingWith: vault)
        case .read(_, let result): result
        }
    }
}

/// The response to one refresh, with what is needed to read it.
struct ReceivedResponse: Sendable {
    let refresh: InFlightRefresh
    /// The refresh token that was sent.
    let sent: Secret
    let client: ClientSecrets.Entry?
    var response: RawRefreshResponse
    /// The time from which the lifetimes in the response count.
    let receivedAt: Timestamp
    let latency: Duration

    /// The response without the secrets that it repeats; its tokens are not sealed.
    var parsed: ParsedRefreshResponse {
        ParsedRefreshResponse.reading(response, sent: [sent] + [client?.secret].compactMap(\.self))
    }

    fileprivate func read(sealingWith vault: TokenVault) throws(SealError) -> RefreshResult {
        let parsed = parsed
        return RefreshResult(
            attempt: refresh.attempt,
            answer: try seal(parsed, with: vault),
            clientSecret: client?.fingerprint ?? .none,
            status: parsed.status,
            text: parsed.text,
            latency: latency
        )
    }

    private func seal(_ parsed: ParsedRefreshResponse, with vault: TokenVault) throws(SealError) -> RefreshResult.Answer
    {
        switch parsed.verdict {
        case .granted(let tokens):
            let expiresAt = tokens.refreshTokenLifetime.map { receivedAt + $0 }
            return .granted(
                RefreshedTokens(
                    accessToken: Grant.AccessToken(
                        sealed: try vault.seal(accessToken: tokens.accessToken, for: refresh.grant.id),
                        obtainedAt: receivedAt,
                        expiresAt: receivedAt + tokens.lifetime,
                        type: tokens.type
                    ),
                    rotated: try seal(rotated: tokens.rotated, expiresAt: expiresAt, with: vault),
                    scope: tokens.scope,
                    refreshTokenExpiresAt: expiresAt,
                    digest: IssuedTokens.digest(of: tokens.accessToken)
                )
            )
        case .flawed(let code, let rotated):
            return .flawed(code: code, rotated: try seal(rotated: rotated, expiresAt: nil, with: vault))
        case let verdict:
            return .failed(verdict, retryAfter: parsed.retryAfter)
        }
    }

    /// Seals a rotated refresh token.
    ///
    /// A server that returns the refresh token it was sent has not rotated it.
    private func seal(
        rotated: Secret?,
        expiresAt: Timestamp?,
        with vault: TokenVault
    ) throws(SealError) -> Grant.RefreshToken? {
        guard let rotated, rotated != sent else { return nil }
        return try vault.seal(refreshToken: rotated, for: refresh.grant.id, expiresAt: expiresAt)
    }
}

/// A refresh whose result is committed, or never will be.
///
/// It is shared by the log and the callers that wait, because copies of decisions are costly.
final class FinishedRefresh: Sendable {
    let refresh: InFlightRefresh
    /// The result; `nil` if the response could not be sealed and so was not read.
    let result: RefreshResult?
    /// The decision that is stored; `nil` if no request was sent, or if the worker stops while the store fails.
    let decision: RefreshDecision?
    /// The events of other grants that were recalled because of this result.
    let recalled: [GrantEvent]
    /// `true` if it was stored without its client's health.
    let isPlain: Bool

    init(
        _ refresh: InFlightRefresh,
        _ result: RefreshResult?,
        decision: consuming RefreshDecision? = nil,
        recalled: [GrantEvent] = [],
        isPlain: Bool = false
    ) {
        self.refresh = refresh
        self.result = result
        self.decision = decision
        self.recalled = recalled
        self.isPlain = isPlain
    }

    /// `true` if no request was sent, so that the grant can be tried again at once.
    var isNotSent: Bool { result?.answer.isNotSent ?? false }
}

/// The end of a refresh, as reported to the callers that wait for it.
enum RefreshCompletion: Sendable {
    /// The result is committed.
    case committed(FinishedRefresh)
    /// Another worker has the grant, or it was not due any more.
    case handledElsewhere
    /// The lease was given back, or the store failed, before there was an answer.
    case abandoned
    /// A caller's refresh was not claimed, for this reason.
    case refused(VendReason)
}

/// A signal of the end of a refresh, which any number of callers can await, before or after it.
final class CompletionSignal: Sendable {
    private struct State {
        var completion: RefreshCompletion?
        var waiters: [CheckedContinuation<RefreshCompletion, Never>] = []
    }

    private let state = Mutex(State())

    /// The end of the refresh; `nil` while it is in flight.
    var completion: RefreshCompletion? { state.withLock { $0.completion } }

    /// Waits for the end of the refresh.
    var value: RefreshCompletion {
        get async {
            await withCheckedContinuation { waiter in
                let completion = state.withLock { state in
                    if state.completion == nil { state.waiters.append(waiter) }
                    return state.completion
                }
                if let completion { waiter.resume(returning: completion) }
            }
        }
    }

    /// Wakes all waiting callers; only the first call counts.
    func complete(_ completion: RefreshCompletion) {
        let waiters = state.withLock { state in
            guard state.completion == nil else { return [CheckedContinuation<RefreshCompletion, Never>]() }
            state.completion = completion
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: completion) }
    }
}
