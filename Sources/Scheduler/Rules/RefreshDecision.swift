import Base
import Crypto
import GoogleOAuth
import Storage
import Telemetry

/// The decision of the rules about one result: the values to store, and the actions that follow the commit.
struct RefreshDecision: Sendable {
    var outcome: RefreshOutcome
    /// The grant as it is to be stored, or `nil` if it has been deleted since the claim.
    var grant: Grant?
    /// The events for the grant's history.
    var events: [GrantEvent] = []
    /// The client's health as it is to be stored.
    var health: ClientHealth
    var effect = ClientEffect()
    /// The grants to recall, which this client's wave ended before it was recognised.
    var recalls: [GrantID] = []
    /// `true` if a revocation was sent, which has ended every grant of the account.
    var endsAccount = false
    /// `true` if only the success of another grant can show if this grant is at fault, or its client.
    var needsWitness = false
    /// The scopes that the grant had before this answer and has lost with it.
    var lostScopes: [String] = []
    var alarm: Alarm?

    /// An event that a person must look at.
    struct Alarm: Sendable {
        let kind: AlarmKind
        let text: String
    }

    var isRefreshed: Bool { outcome == .refreshed }
    /// `true` if the result does not count any more.
    var isVoid: Bool { outcome == .void }
}

extension StoreTransaction {
    /// Stores the grant of a decision about a stored one, with its history and the notices that are due. The caller
    /// stores the health.
    func store(_ decision: RefreshDecision, about stored: Grant, at now: Timestamp) throws {
        guard let grant = decision.grant else { return }
        try update(grant)
        try record(decision, changing: stored, to: grant, at: now)
    }

    /// Stores a decision about a grant as it was claimed. If the stored grant has changed since, it stores nothing and
    /// returns `false`.
    func store(_ decision: RefreshDecision, replacing claimed: Grant, at now: Timestamp) throws -> Bool {
        guard let grant = decision.grant, try replace(claimed, by: grant) else { return false }
        try record(decision, changing: claimed, to: grant, at: now)
        return true
    }

    private func record(
        _ decision: RefreshDecision,
        changing former: Grant,
        to grant: Grant,
        at now: Timestamp
    ) throws {
        for event in decision.events {
            try record(event)
            if event.kind == .rotated { try rememberSpentToken(of: former, at: now) }
        }
        guard !decision.lostScopes.isEmpty else { return }
        let lost = decision.lostScopes.joined(separator: " ")
        try notify(.lostScopes(of: grant.id, lost: lost, granted: grant.scope), ofUser: grant.userID, at: now)
    }
}

/// The changes of a client's health by an answer that have a consequence of their own.
struct ClientEffect {
    var breakerChange: Breaker.Change?
    var limitsChanged = false
    /// `true` if the answer ends an outage of the endpoint, so that the grants that failed during it are tried again
    /// at once.
    var endsOutage = false

    /// Adds the effect of plain refreshes that were counted before this answer.
    mutating func add(_ other: ClientEffect) {
        breakerChange = breakerChange ?? other.breakerChange
        endsOutage = endsOutage || other.endsOutage
    }
}

/// All that the rules know when they decide about a result.
///
/// A rule returns a decision and changes nothing else, so no rule depends on what another has changed. `decide`
/// consumes the context and changes grant and health in place: a copy of a grant costs 900 instructions.
struct DecisionContext: Sendable {
    var result: RefreshResult
    /// The grant as stored at this instant.
    var grant: Grant
    /// The health of the grant's client as stored at this instant.
    var health: ClientHealth
    var now: Timestamp
    var instant: BootInstant
    /// A random number in 0..<1, for back-off.
    var jitter: Double

    /// `true` while the lease of the result's claim is stored: no other worker has claimed the grant since.
    var holdsLease: Bool { grant.lease?.claim == result.attempt.claim }

    /// `true` if the request was sent with the current version of the refresh token. After a restore, the token of a
    /// user who signs in again can get a number that another token had. So tokens are compared too.
    var isCurrent: Bool {
        let attempt = result.attempt
        guard grant.generation == attempt.generation else { return false }
        guard result.answer.containsTokens, let sent = attempt.refreshToken else { return true }
        return grant.holds(sent)
    }

    /// Returns a decision that stores the grant with a change, and the health.
    func decision(
        _ outcome: RefreshOutcome,
        health: ClientHealth? = nil,
        _ change: (inout Grant) -> [GrantEvent] = { _ in [] }
    ) -> RefreshDecision {
        var grant = grant
        let events = change(&grant)
        return RefreshDecision(outcome: outcome, grant: grant, events: events, health: health ?? self.health)
    }

    /// Returns the health with one more answer that shows if the grant's token is alive. Grants that never worked do
    /// not count, so that dead tokens which strangers bring cannot look like a wave.
    func healthRecordingAnswer(isRefusal: Bool) -> ClientHealth {
        guard grant.isProven else { return health }
        var health = health
        health.recordAnswer(isRefusal: isRefusal, at: now)
        return health
    }
}

/// One attempt at a refresh and the response to it, as read: part of the rules' input, `DecisionContext`.
///
/// It is shared on its way from the committer to the log, because copies of it are costly.
package final class RefreshResult: Sendable {
    /// The claim under which the attempt was made.
    let attempt: RefreshAttempt
    let answer: Answer
    /// The client secret that the request contained.
    let clientSecret: ClientSecretFingerprint
    /// The HTTP status, the error text and the latency, for the log.
    let status: Int?
    let text: String?
    let latency: Duration?

    init(
        attempt: RefreshAttempt,
        answer: Answer,
        clientSecret: ClientSecretFingerprint = .none,
        status: Int? = nil,
        text: String? = nil,
        latency: Duration? = nil
    ) {
        self.attempt = attempt
        self.answer = answer
        self.clientSecret = clientSecret
        self.status = status
        self.text = text
        self.latency = latency
    }

    /// The answer, with its tokens sealed for the grant.
    enum Answer: Sendable {
        case granted(RefreshedTokens)
        /// A faulty 200. A refresh token in it is kept regardless of the fault.
        case flawed(code: String, rotated: Grant.RefreshToken?)
        /// An answer without tokens or no answer, with the wait that the server asks for.
        case failed(RefreshFailure, retryAfter: Duration?)
        /// No request was sent, because the grant does not have a refresh token.
        case nothingToSend
        /// No request was sent, because the stored token cannot be opened.
        case unreadable(CryptoError)
        /// An attempt at a revocation. Its `failure` is `nil` if it succeeded.
        case revocation(failure: LookupError?)

        /// The refresh token that the answer brings to replace the one that was sent.
        var rotated: Grant.RefreshToken? {
            switch self {
            case .granted(let tokens): tokens.rotated
            case .flawed(_, let rotated): rotated
            case .failed, .nothingToSend, .unreadable, .revocation: nil
            }
        }

        /// `true` if the answer contains tokens: this might be their only copy.
        var containsTokens: Bool { if case .granted = self { true } else { rotated != nil } }

        /// `true` if the server might have processed the request, or might still be working on it.
        var isOutcomeUnknown: Bool {
            if case .failed(let failure, _) = self { failure.isOutcomeUnknown } else { false }
        }

        /// `true` if the worker did not send the request, so there is nothing to store.
        var isNotSent: Bool {
            if case .failed(.notSent, _) = self { true } else { false }
        }
    }

    /// A short code for logs.
    var code: String {
        switch answer {
        case .granted: "granted"
        case .flawed(let code, _): code
        case .failed(let failure, _): failure.code
        case .nothingToSend: "no_refresh_token"
        case .unreadable: "unreadable_token"
        case .revocation(nil): "revoked"
        case .revocation: "revocation_failed"
        }
    }

    /// The code of an answer that brought no token, or `nil` for any other, and if nothing was sent or waited for.
    var failureCode: String? {
        switch answer {
        case .granted, .failed(.notSent, _), .failed(.givenUp, _), .nothingToSend, .unreadable, .revocation: nil
        case .flawed, .failed: GrantReason(rawValue: code).rawValue
        }
    }
}

extension RefreshResult {
    /// Reads the response to a request that contained a refresh token, and seals its tokens. Lifetimes in the response
    /// count from `receivedAt`.
    convenience init(
        of refresh: InFlightRefresh,
        reading response: ParsedRefreshResponse,
        to sent: Secret,
        clientSecret: ClientSecretFingerprint,
        receivedAt: Timestamp,
        latency: Duration,
        sealingWith vault: TokenVault
    ) throws(CryptoError) {
        let id = refresh.grant.id
        // A server that returns the refresh token it was sent has not rotated it.
        let seal = { (rotated: Secret?, expiresAt: Timestamp?) throws(CryptoError) -> Grant.RefreshToken? in
            guard let rotated, rotated != sent else { return nil }
            return try vault.seal(refreshToken: rotated, for: id, expiresAt: expiresAt)
        }
        let answer: Answer
        switch response.verdict {
        case .granted(let tokens):
            let expiresAt = tokens.refreshTokenLifetime.map { receivedAt + $0 }
            answer = .granted(
                RefreshedTokens(
                    accessToken: Grant.AccessToken(
                        sealed: try vault.seal(accessToken: tokens.accessToken, for: id),
                        obtainedAt: receivedAt,
                        expiresAt: receivedAt + tokens.lifetime,
                        type: tokens.type
                    ),
                    rotated: try seal(tokens.rotated, expiresAt),
                    scope: tokens.scope,
                    refreshTokenExpiresAt: expiresAt,
                    digest: IssuedTokens.digest(of: tokens.accessToken)
                )
            )
        case .flawed(let code, let rotated): answer = .flawed(code: code, rotated: try seal(rotated, nil))
        case .failed(let failure): answer = .failed(failure, retryAfter: response.retryAfter)
        }
        self.init(
            attempt: refresh.attempt,
            answer: answer,
            clientSecret: clientSecret,
            status: response.status,
            text: response.text,
            latency: latency
        )
    }
}

/// A claim on a grant, with the grant's state at the time of the claim.
struct RefreshAttempt: Hashable, Sendable {
    var grant: GrantID
    var clientID: String
    var claim: Int64
    /// The fence: the result is about this version of the refresh token.
    var generation: Int64
    /// The grant's `lastAttemptAt` at the claim. A different value means a change while the request was in flight.
    var lastAttemptAt: Timestamp?

    /// The refresh token that was stored at the claim. Its answer counts while it is still the stored one.
    var refreshToken: Grant.RefreshToken?
    /// `true` if the result of an earlier claim on the grant was never committed, so that an answer might be lost.
    var followsUnfinishedClaim: Bool = false
}

extension RefreshAttempt {
    /// The attempt that a claim makes, from the grant as the claim returned it.
    init(of claimed: Grant) {
        self.init(
            grant: claimed.id,
            clientID: claimed.clientID,
            claim: claimed.lease?.claim ?? 0,
            generation: claimed.generation,
            lastAttemptAt: claimed.lastAttemptAt,
            refreshToken: claimed.refreshToken,
            followsUnfinishedClaim: claimed.lease?.followsUnfinishedClaim ?? false
        )
    }
}
