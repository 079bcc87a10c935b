import Base

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
    // These are lists, because searching two or three codes costs less than a hash.

    /// The reasons of grants that an `invalid_grant` has ended.
    static let endedByInvalidGrant: [GrantReason] = [.invalidGrant, .answerLost]
    /// Google said `invalid_grant`, and the refusal is in doubt: another refresh must confirm it.
    package static let invalidGrantUnconfirmed = GrantReason(rawValue: "invalid_grant_unconfirmed")
    /// Google gave another code that ends or suspends a grant, and that refusal is in doubt.
    static let refusalUnconfirmed = GrantReason(rawValue: "refusal_unconfirmed")
    /// The reasons of grants whose refusal is in doubt.
    package static let inDoubt: [GrantReason] = [.invalidGrantUnconfirmed, .refusalUnconfirmed]
    /// The reason of a grant while this reason for its end is in doubt.
    package var whileInDoubt: GrantReason {
        Self.endedByInvalidGrant.contains(self) ? .invalidGrantUnconfirmed : .refusalUnconfirmed
    }
    /// The access token expired, and the grant does not have a refresh token to get another.
    package static let noRefreshToken = GrantReason(rawValue: "no_refresh_token")
    /// Google said `invalid_grant` to the proof for a bound token, and the clock of the worker's machine is wrong.
    package static let clockWrong = GrantReason(rawValue: "clock_wrong")
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
    /// The user has connected the account by another of their connections.
    package static let accountMoved = GrantReason(rawValue: "account_moved")
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
    /// The reasons of `retrying` grants that wait for a confirmation (``Grant/awaitsConfirmation``).
    package static let unconfirmedReasons: [GrantReason] = inDoubt + [.clientMismatchUnconfirmed]
    /// No reason.
    package static let none = GrantReason(rawValue: "none")

    /// The reasons that the worker itself gives. Any other one is an error code of Google or a kind of fault:
    /// `http_503`, `timeout`, `flawed_answer`, `not_json`, `app_not_authentic`. A wave can undo an end with such a code
    /// (``Grant/canBeRecalled``). The documents list the reasons of the worker.
    static let givenByWorker: [GrantReason] = [
        .invalidGrant, .answerLost, .invalidGrantUnconfirmed, .refusalUnconfirmed, .noRefreshToken, .clockWrong,
        .clientMismatch, .clientMismatchUnconfirmed, .accountMismatch, .accountUnchecked, .userRequest, .accountMoved,
        .tokenRevoked, .tokensRevoked, .accountDisabled, .userDeleted, .forgotten, .none,
    ]
}
