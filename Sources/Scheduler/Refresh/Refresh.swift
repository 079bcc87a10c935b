import Base
import Crypto
import GoogleOAuth
import Storage
import Synchronization

/// One refresh of one grant, from its claim to its stored decision.
///
/// The engine, the dispatcher, the committer and the log share it. Dispatcher and committer move it from one ``Phase`` to
/// the next:
///
///     let refresh = Refresh(of: grant, isForced: false, leaseEnd: leaseEnd)    // claimed
///     refresh.didSend(request)               // sent: the HTTP client gets the request next
///     refresh.didReceive(received)           // answered: the dispatcher has got the response
///     refresh.didRead(result)                // read: the committer has sealed the tokens
///     refresh.didStore(decision)             // stored: after the commit
///
/// It is a class, because copies of a grant and of a decision are costly.
final class Refresh: Sendable {
    /// The grant as the claim returned it.
    let grant: Grant
    let claim: RefreshClaim
    /// `true` if a caller asked for the refresh before it was due.
    let isForced: Bool
    // These two are stored, because they are asked for often, and reading the grant copies parts of it.

    /// `true` for a revocation at Google.
    let isRevocation: Bool
    /// `true` if a request to the token endpoint is needed: not for a revocation, and not without a refresh token.
    let needsTokenRequest: Bool
    /// `true` if its result must be stored with the client's health, because the breaker is not closed or the endpoint
    /// fails.
    let needsHealth: Bool
    private let state: Mutex<State>

    private struct State {
        var phase = Phase.claimed
        /// The end of the lease by this machine's boot clock.
        ///
        /// It is never later than the stored one, because the clock is read before the lease is requested.
        var leaseEnd: BootInstant
        /// Cancels the request.
        var cancelRequest: (@Sendable () -> Void)?
        /// Compares the account of the response, before that counts.
        var accountCheck: Task<Void, Never>?
        var isCancelled = false
        var hasAnsweredChallenge = false
    }

    /// Creates the refresh of a grant as a claim returned it, with its lease.
    init(of grant: Grant, isForced: Bool, needsHealth: Bool = true, leaseEnd: BootInstant) {
        self.grant = grant
        claim = RefreshClaim(of: grant)
        isRevocation = grant.revocationAskedAt != nil
        needsTokenRequest = claim.refreshToken != nil && !isRevocation
        self.isForced = isForced
        self.needsHealth = needsHealth
        state = Mutex(State(leaseEnd: leaseEnd))
    }

    // MARK: Requests

    /// `true` if the endpoint's first response was a challenge, so that two requests were sent.
    var hasAnsweredChallenge: Bool { state.withLock(\.hasAnsweredChallenge) }

    func willAnswerChallenge() { state.withLock { $0.hasAnsweredChallenge = true } }

    // MARK: Lease

    func leaseRenewed(until instant: BootInstant) { state.withLock { $0.leaseEnd = max($0.leaseEnd, instant) } }

    func leaseRemaining(at instant: BootInstant) -> Duration { state.withLock(\.leaseEnd) - instant }

    // MARK: Cancellation

    /// Stops waiting for the endpoint. The refresh still goes on to a result.
    func cancel() {
        let (cancelRequest, accountCheck) = state.withLock { state in
            state.isCancelled = true
            return (state.cancelRequest, state.accountCheck)
        }
        cancelRequest?()
        accountCheck?.cancel()
    }

    /// Sets what cancels the request. The response can have arrived already.
    func onCancel(_ cancelRequest: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.cancelRequest = cancelRequest
            return state.isCancelled
        }
        if isCancelled { cancelRequest() }
    }

    /// Runs the check of the response's account, which ``cancel()`` cancels. A cancelled check still ends.
    func runAccountCheck(_ check: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            let task = Task { await check() }
            if state.isCancelled { task.cancel() }
            state.accountCheck = task
        }
    }
}

extension Refresh {
    /// How far a refresh has come.
    enum Phase: Sendable {
        /// The lease is stored.
        ///
        /// Next: `sent`, or `read` if the token cannot be opened, if there is none, and for a revocation.
        case claimed

        /// The token is opened, and the HTTP client gets the request next. The client can still withhold it.
        ///
        /// Next: `answered`.
        case sent(SentRequest)

        /// The response, or the failure to get one, waits for the committer. Its tokens are in the clear.
        ///
        /// Next: `read`. It stays here while its tokens cannot be sealed.
        case answered(ReceivedResponse)

        /// The tokens are sealed, perhaps their only copy: a server that rotates accepts no older one.
        ///
        /// Next: `stored`, or `ended`.
        case read(RefreshResult)

        /// The decision about the result is committed.
        case stored(RefreshResult, StoredDecision)

        /// No decision is stored: no request was sent, or the worker stops while the store fails. Without a result, its
        /// tokens could not be sealed either.
        case ended(RefreshResult?)
    }

    var phase: Phase { state.withLock(\.phase) }

    func didSend(_ request: SentRequest) { state.withLock { $0.phase = .sent(request) } }

    /// Takes the response. Any thread can call it.
    func didReceive(_ received: ReceivedResponse) { state.withLock { $0.phase = .answered(received) } }

    func didRead(_ result: RefreshResult) { state.withLock { $0.phase = .read(result) } }

    func didStore(_ decision: StoredDecision) { state.withLock { $0.phase = .stored($0.phase.result, decision) } }

    /// Ends the refresh without a decision.
    func didEnd() {
        state.withLock { state in
            switch state.phase {
            case .read(let result): state.phase = .ended(result)
            case .claimed, .sent, .answered: state.phase = .ended(nil)
            case .stored, .ended: assertionFailure("a refresh that has ended before")
            }
        }
    }

    // All three read under the lock, because copying a phase out costs 500 instructions.

    /// The response that is not read yet.
    var unreadResponse: ReceivedResponse? { state.withLock(\.phase.unreadResponse) }

    /// The result, once the response is read.
    var result: RefreshResult { state.withLock(\.phase.result) }

    /// The decision, once it is committed.
    var storedDecision: StoredDecision? { state.withLock(\.phase.storedDecision) }

    /// `true` if a new access token is stored.
    var isRefreshed: Bool { storedDecision?.decision.isRefreshed ?? false }
}

extension Refresh.Phase {
    fileprivate var result: RefreshResult {
        switch self {
        case .read(let result), .stored(let result, _), .ended(let result?): return result
        case .claimed, .sent, .answered, .ended(nil): preconditionFailure("a refresh whose response is not read")
        }
    }

    fileprivate var unreadResponse: ReceivedResponse? {
        if case .answered(let received) = self { received } else { nil }
    }

    fileprivate var storedDecision: StoredDecision? {
        if case .stored(_, let decision) = self { decision } else { nil }
    }
}

/// A request to the token endpoint that is under way.
struct SentRequest: Sendable {
    let token: Secret
    /// The secret of a confidential client, which the request contains too.
    let clientSecret: ClientSecret?
    let sentAt: BootInstant

    /// The secrets that a text in the response must not repeat.
    var secrets: [Secret] { [token] + [clientSecret?.secret].compactMap(\.self) }
}

/// The end of a request: the response, or the failure to get one.
///
/// It is unread, because reading takes time that the thread that receives responses does not have. A first response is
/// read already: its account was compared.
struct ReceivedResponse: Sendable {
    let response: RefreshResponse
    let request: SentRequest
    /// The time from which the lifetimes in the response count.
    let receivedAt: Timestamp
    /// The time from the request to the end of the response.
    let latency: Duration

    /// Returns the same with a response that is read already.
    func with(_ parsed: ParsedRefreshResponse) -> ReceivedResponse {
        ReceivedResponse(response: .read(parsed), request: request, receivedAt: receivedAt, latency: latency)
    }
}

/// A decision that is committed with its result.
final class StoredDecision: Sendable {
    let decision: RefreshDecision
    /// The events of other grants that were recalled because of the result.
    let recalled: [GrantEvent]
    /// `true` if it was stored without its client's health.
    let isPlain: Bool
    /// `true` if the grant is not in the database any more. Stored, because asking the decision copies its grant.
    let isGrantGone: Bool

    init(
        _ decision: consuming RefreshDecision,
        recalled: [GrantEvent] = [],
        isPlain: Bool = false,
        isGrantGone: Bool = false
    ) {
        self.decision = decision
        self.recalled = recalled
        self.isPlain = isPlain
        self.isGrantGone = isGrantGone
    }
}
