private import Crypto

/// The reason for a grant's state: a short code that is safe to print.
package struct GrantReason: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String

    /// Takes a code as it is; anything but a lower-case code of at most 64 characters becomes `unknown`.
    package init(rawValue: String) {
        self.rawValue = rawValue.isLowerCaseCode ? rawValue : "unknown"
    }

    private init(_ reason: WorkerReason) {
        rawValue = reason.rawValue
    }

    package var description: String { rawValue }

    /// The reasons that the worker itself gives, as listed in the documents.
    ///
    /// Any other reason is an error code of Google.
    package enum WorkerReason: String, CaseIterable, Sendable {
        case invalidGrant = "invalid_grant"
        case answerLost = "answer_lost"
        case invalidGrantUnconfirmed = "invalid_grant_unconfirmed"
        case noRefreshToken = "no_refresh_token"
        case clientMismatch = "client_mismatch"
        case clientMismatchUnconfirmed = "client_mismatch_unconfirmed"
        case accountMismatch = "account_mismatch"
        case accountUnchecked = "account_unchecked"
        case userRequest = "user_request"
        case tokenRevoked = "token_revoked"
        case tokensRevoked = "tokens_revoked"
        case accountDisabled = "account_disabled"
        case userDeleted = "user_deleted"
        case none
    }

    /// Google said that the grant has ended.
    package static let invalidGrant = GrantReason(.invalidGrant)
    /// Google said that the grant has ended, but the answer to an earlier request was lost, which may have brought
    /// another token.
    package static let answerLost = GrantReason(.answerLost)
    /// The reasons of grants that an `invalid_grant` has ended.
    package static let endedByAnswer: Set<GrantReason> = [.invalidGrant, .answerLost]
    /// Google said so while the refusal is in doubt: another refresh must confirm it.
    package static let invalidGrantUnconfirmed = GrantReason(.invalidGrantUnconfirmed)
    /// The access token expired, and the grant does not have a refresh token to get another.
    package static let noRefreshToken = GrantReason(.noRefreshToken)
    /// The refresh token belongs to another client.
    package static let clientMismatch = GrantReason(.clientMismatch)
    /// The refresh token seems to belong to another client: another refusal must confirm it.
    package static let clientMismatchUnconfirmed = GrantReason(.clientMismatchUnconfirmed)
    /// The refresh token belongs to another Google account than the access token that came with it.
    package static let accountMismatch = GrantReason(.accountMismatch)
    /// Google did not say which account a new refresh token belongs to.
    package static let accountUnchecked = GrantReason(.accountUnchecked)
    /// The user, or an operator for the user, ended it.
    package static let userRequest = GrantReason(.userRequest)
    /// A security event said that this refresh token is revoked.
    package static let tokenRevoked = GrantReason(.tokenRevoked)
    /// A security event said that all of the user's tokens are revoked.
    package static let tokensRevoked = GrantReason(.tokensRevoked)
    /// A security event said that the account is disabled.
    package static let accountDisabled = GrantReason(.accountDisabled)
    /// The user was deleted.
    package static let userDeleted = GrantReason(.userDeleted)
    /// The reasons of grants that wait for a confirmation, which must not come early.
    package static let awaitingConfirmation: Set<GrantReason> = [.invalidGrantUnconfirmed, .clientMismatchUnconfirmed]
    /// No reason.
    package static let none = GrantReason(.none)
}
