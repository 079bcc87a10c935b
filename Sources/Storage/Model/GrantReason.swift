package import Base

/// The reason for a grant's state: a short code that is safe to print.
package struct GrantReason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String

    /// Takes a code as it is. Anything but a lower-case code of at most 64 characters becomes `unknown`.
    package init(rawValue: String) {
        self.rawValue = rawValue.isLowerCaseCode ? rawValue : "unknown"
    }

    package var description: String { rawValue }

    /// Google said that the grant has ended.
    package static let invalidGrant = GrantReason(rawValue: "invalid_grant")
    /// Google said that the grant has ended, but the answer to an earlier request was lost, which might have brought
    /// another token.
    package static let answerLost = GrantReason(rawValue: "answer_lost")
    /// The reasons of grants that an `invalid_grant` has ended.
    static let endedByAnswer: Set<GrantReason> = [.invalidGrant, .answerLost]
    /// Google said `invalid_grant`, and the refusal is in doubt: another refresh must confirm it.
    package static let invalidGrantUnconfirmed = GrantReason(rawValue: "invalid_grant_unconfirmed")
    /// Google gave another code that ends or suspends a grant, and that refusal is in doubt.
    static let refusalUnconfirmed = GrantReason(rawValue: "refusal_unconfirmed")
    /// The reasons of grants whose refusal is in doubt.
    package static let inDoubt: Set<GrantReason> = [.invalidGrantUnconfirmed, .refusalUnconfirmed]
    /// The reason of a grant while this reason for its end is in doubt.
    package var unconfirmed: GrantReason {
        Self.endedByAnswer.contains(self) ? .invalidGrantUnconfirmed : .refusalUnconfirmed
    }
    /// The access token expired, and the grant does not have a refresh token to get another.
    package static let noRefreshToken = GrantReason(rawValue: "no_refresh_token")
    /// The refresh token belongs to another client.
    package static let clientMismatch = GrantReason(rawValue: "client_mismatch")
    /// The refresh token seems to belong to another client: another refusal must confirm it.
    package static let clientMismatchUnconfirmed = GrantReason(rawValue: "client_mismatch_unconfirmed")
    /// The refresh token belongs to another Google account than the access token that came with it.
    package static let accountMismatch = GrantReason(rawValue: "account_mismatch")
    /// Google did not say which account a new refresh token belongs to.
    package static let accountUnchecked = GrantReason(rawValue: "account_unchecked")
    /// The user, or an operator for the user, ended it.
    package static let userRequest = GrantReason(rawValue: "user_request")
    /// A security event said that this refresh token is revoked.
    package static let tokenRevoked = GrantReason(rawValue: "token_revoked")
    /// A security event said that all of the user's tokens are revoked.
    package static let tokensRevoked = GrantReason(rawValue: "tokens_revoked")
    /// A security event said that the account is disabled.
    package static let accountDisabled = GrantReason(rawValue: "account_disabled")
    /// The user was deleted.
    package static let userDeleted = GrantReason(rawValue: "user_deleted")
    /// The grant ended so long ago that its tokens and account were deleted.
    package static let forgotten = GrantReason(rawValue: "forgotten")
    /// The reasons of grants that wait for a confirmation, which must not come early.
    package static let mustNotComeEarly = inDoubt.union([.clientMismatchUnconfirmed])
    /// No reason.
    package static let none = GrantReason(rawValue: "none")

    /// The reasons that the worker itself gives, as listed in the documents: any other one is an error code of Google.
    static let ofWorker: [GrantReason] = [
        .invalidGrant, .answerLost, .invalidGrantUnconfirmed, .refusalUnconfirmed, .noRefreshToken, .clientMismatch,
        .clientMismatchUnconfirmed, .accountMismatch, .accountUnchecked, .userRequest, .tokenRevoked, .tokensRevoked,
        .accountDisabled, .userDeleted, .forgotten, .none,
    ]
}

/// One event of a grant's history.
package struct GrantEvent: Hashable, Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        /// The app or an import brought tokens.
        case connected
        /// The state changed.
        case state
        /// Another refresh token replaced the stored one.
        case rotated
        /// The granted scopes differ from those of the previous answer.
        case scopeChanged = "scope_changed"
    }

    package var grant: GrantID
    package var at: Timestamp
    package var kind: Kind
    package var from: GrantState?
    package var to: GrantState
    package var reason: GrantReason
    package var generation: Int64
    /// The time of the consent that Google has ended, if this event is its end and the time is known.
    package internal(set) var consentedAt: Timestamp?
}

extension GrantEvent {
    package init(of grant: Grant, kind: Kind, from: GrantState?, at now: Timestamp) {
        self.init(
            grant: grant.id,
            at: now,
            kind: kind,
            from: from,
            to: grant.state,
            reason: grant.reason,
            generation: grant.generation
        )
    }
}

/// The limits of stored data: how long, or how much of it, a store keeps.
package enum Retention {
    /// Google repeats a security event for days, so its identifier is kept for two months.
    package static let securityEvents: Duration = .seconds(60 * 86_400)
    /// Longer than any database is used: a token that a user left is remembered until the user is deleted.
    static let leftTokens: Duration = .seconds(1000 * 365 * 86_400)
    /// The beginning of the identifier of such a token.
    static let leftTokenPrefix = "left-refresh-token:"
    /// As many as live at Google for one account and client: the next one ends the oldest
    /// (https://developers.google.com/identity/protocols/oauth2#expiration).
    static let leftTokensPerGrant = 100
    /// The number of events that are kept for one grant, in addition to its last connection.
    ///
    /// A server that rotates adds an event for each refresh, which is 24 a day. The statement that adds an event
    /// removes what it pushes out, so no sweep is needed.
    package static let eventsPerGrant = 100
    /// Notices that were accepted or given up are kept for a replay.
    static let notices: Duration = .seconds(7 * 86_400)
}
