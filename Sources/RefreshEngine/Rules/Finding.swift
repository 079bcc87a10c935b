package import Clocks
package import GoogleOAuth
package import Observability
package import Scheduler
package import Secrets
package import Store

/// One refresh that was tried, and what came of it: what the rules decide about.
package struct Finding: Sendable {
    /// The claim under which it was tried.
    package var attempt: Attempt
    package var answer: Answer

    package init(attempt: Attempt, answer: Answer) {
        self.attempt = attempt
        self.answer = answer
    }

    /// What was answered, its tokens sealed for the grant.
    package enum Answer: Sendable {
        case granted(RefreshedTokens)
        /// A faulty 200; a refresh token in it is kept whatever else was wrong.
        case flawed(code: String, rotated: Grant.RefreshToken?)
        /// Any other verdict, with how long the server asks to be left alone.
        case refused(RefreshVerdict, retryAfter: Duration?)
        /// Nothing was asked: there is no refresh token.
        case nothingToSend
        /// Nothing was asked: the stored token cannot be opened.
        case unreadable(SealError)
        /// A revocation at Google was tried; `nil` when it is done.
        case revocation(failure: LookupFailure?)

        /// Whether the answer holds tokens, of which there may be no other copy.
        package var bringsTokens: Bool {
            switch self {
            case .granted: true
            case .flawed(_, let rotated): rotated != nil
            case .refused, .nothingToSend, .unreadable, .revocation: false
            }
        }

        /// Whether the worker kept the request here: there is nothing to store.
        var isNotSent: Bool {
            guard case .refused(.notSent, _) = self else { return false }
            return true
        }
    }

    /// The refresh token that the answer brings in place of the one it was asked with.
    var rotated: Grant.RefreshToken? {
        switch answer {
        case .granted(let tokens): tokens.rotated
        case .flawed(_, let rotated): rotated
        case .refused, .nothingToSend, .unreadable, .revocation: nil
        }
    }

    /// A short code for logs.
    package var code: String {
        switch answer {
        case .granted: "granted"
        case .flawed(let code, _): code
        case .refused(let verdict, _): verdict.code
        case .nothingToSend: "no_refresh_token"
        case .unreadable: "unreadable_token"
        case .revocation(nil): "revoked"
        case .revocation: "revocation_failed"
        }
    }
}

/// A claim on a grant, as it stood when the grant was taken.
package struct Attempt: Hashable, Sendable {
    package var grant: GrantID
    package var clientID: String
    package var claim: Int64
    /// The fence: what is found out is about this version of the refresh token.
    package var generation: Int64
    /// The time of the grant's last change of standing before the claim: a later one came while the request was in flight.
    package var lastAttemptAt: Timestamp?

    /// The refresh token that was stored at the claim; an answer to it counts while it is still the stored one.
    package var refreshToken: Grant.RefreshToken?
    /// `true` if an earlier claim on the grant was never settled, so that its answer may be lost.
    package var followsUnsettledClaim: Bool

    package init(
        grant: GrantID,
        clientID: String,
        claim: Int64,
        generation: Int64,
        lastAttemptAt: Timestamp? = nil,
        refreshToken: Grant.RefreshToken? = nil,
        followsUnsettledClaim: Bool = false
    ) {
        self.grant = grant
        self.clientID = clientID
        self.claim = claim
        self.generation = generation
        self.lastAttemptAt = lastAttemptAt
        self.refreshToken = refreshToken
        self.followsUnsettledClaim = followsUnsettledClaim
    }
}

/// The circumstances of a decision.
package struct Moment: Sendable {
    package var now: Timestamp
    package var instant: BootInstant
    /// A random number in 0..<1, for back-off.
    package var unit: Double

    package init(now: Timestamp, instant: BootInstant, unit: Double) {
        self.now = now
        self.instant = instant
        self.unit = unit
    }
}

/// What the rules made of one finding.
package struct Ruling: Sendable {
    package var outcome: RefreshOutcome
    package var events: [GrantEvent] = []
    package var breakerChange: Breaker.Change?
    package var limitsChanged = false
    package var alarm: Alarm?
    /// Whether an outage of the endpoint ends with this answer, so that what failed meanwhile is tried again at once.
    package var endsOutage = false
    /// The grants to call back that this client's wave disconnected before it showed.
    package var recalls: [GrantID] = []
    /// The scopes that the grant had before this answer and does not have any more.
    package var lostScopes: [String] = []
}

extension StoreTransaction {
    /// Stores a grant as a ruling left it, with its history and the notices that are due.
    func store(_ grant: Grant, after ruling: Ruling, at now: Timestamp) throws {
        try update(grant)
        for event in ruling.events { try record(event) }
        guard !ruling.lostScopes.isEmpty else { return }
        let lost = ruling.lostScopes.joined(separator: " ")
        try notify(.lostScopes(of: grant.id, lost: lost, granted: grant.scope), ofUser: grant.userID, at: now)
    }
}

/// Something that a person must look at.
package struct Alarm: Hashable, Sendable {
    package var kind: AlarmKind
    package var clientID: String
    package var text: String
}
