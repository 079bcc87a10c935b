package import Base
package import Crypto

/// One user's consent at Google, as stored.
///
/// Its tokens are sealed. Its state changes only in `Grant+Life.swift` and `Grant+Ending.swift`.
package struct Grant: Hashable, Sendable {
    /// A sealed access token and its times.
    package struct AccessToken: Hashable, Sendable {
        package var sealed: SealedSecret
        package var obtainedAt: Timestamp
        package var expiresAt: Timestamp
        package var type: String

        package init(sealed: SealedSecret, obtainedAt: Timestamp, expiresAt: Timestamp, type: String = "Bearer") {
            self.sealed = sealed
            self.obtainedAt = obtainedAt
            self.expiresAt = expiresAt
            self.type = type
        }
    }

    /// A sealed refresh token and its properties, made by ``TokenVault``.
    package struct RefreshToken: Hashable, Sendable {
        package var sealed: SealedSecret
        /// The hashes by which security events name it, or `nil` for one that was stored before marks existed.
        package var marks: TokenMarks?
        /// The key of the ring that Google has bound the token to, or `nil` for one that needs no proof.
        package var bindingKeyID: KeyID?
        /// The end of the token's own lifetime, if Google gave it.
        package var expiresAt: Timestamp?
        /// When the app brought the token after its user's consent, or `nil` for an imported one. A token
        /// that replaces it in an answer belongs to the same consent.
        package internal(set) var consentedAt: Timestamp?
        /// `true` if the backend was notified that the token, or one that it replaced in an answer, expires soon.
        package internal(set) var isExpiryNoticed: Bool

        package init(
            sealed: SealedSecret,
            marks: TokenMarks? = nil,
            bindingKeyID: KeyID? = nil,
            expiresAt: Timestamp? = nil,
            consentedAt: Timestamp? = nil,
            isExpiryNoticed: Bool = false
        ) {
            self.sealed = sealed
            self.marks = marks
            self.bindingKeyID = bindingKeyID
            self.expiresAt = expiresAt
            self.consentedAt = consentedAt
            self.isExpiryNoticed = isExpiryNoticed
        }
    }

    package let id: GrantID
    package internal(set) var userID: String
    /// Which of the user's connections this is.
    package let connection: ConnectionID
    package let createdAt: Timestamp

    package var clientID: String
    package var owner: Owner
    /// The scopes of the last answer, separated by spaces.
    package var scope: String

    package internal(set) var state: GrantState
    package internal(set) var reason: GrantReason
    /// Since when the grant is in its state.
    package internal(set) var since: Timestamp
    /// The fence: the version of the stored refresh token. A result counts only if the version it was requested with is
    /// still current. Rotated tokens that come late are the exception (`RefreshRules+LateAnswer.swift`).
    package internal(set) var generation: Int64

    package internal(set) var refreshToken: RefreshToken?
    package internal(set) var accessToken: AccessToken?

    /// The time of the next action for the grant, or `nil` if there is none.
    package internal(set) var dueAt: Timestamp?
    /// Failures in a row. The column is named `attempts`.
    package internal(set) var failures = 0
    /// The time of the first failure in the current run of failures.
    package internal(set) var failingSince: Timestamp?
    package internal(set) var lastSuccessAt: Timestamp?
    package internal(set) var lastAttemptAt: Timestamp?
    /// `true` if a refresh with the stored refresh token, or with one it was rotated from, ever succeeded.
    package internal(set) var isProven = false
    /// When a revocation at Google was requested. The tokens are deleted when it is done, or a day later.
    package internal(set) var revocationAskedAt: Timestamp?

    /// The time of the first refusal that waits for its confirmation. If the token might be a foreign one, the time of
    /// the client error after which another grant must succeed. ``isInDoubt`` tells which.
    package internal(set) var suspectedSince: Timestamp?
    /// Successful refreshes in a row that each came long before their scheduled time.
    package internal(set) var quickRefreshes = 0
    /// When a worker found that the answer to an earlier request was never stored, or `nil` once a refresh
    /// has succeeded.
    package internal(set) var answerLostAt: Timestamp?
    /// The claims whose answers brought the last stored rotated refresh tokens, the latest last.
    ///
    /// A commit whose confirmation was lost is repeated, and a spill file is read again. The rotated token might have
    /// been replaced since: by the next refresh, by the app, or by the same token sealed with another key. Its claim
    /// still shows that it was stored, so that only a token that was never stored counts as lost.
    var rotationClaims: [Int64] = []
    package internal(set) var issuedTokens = IssuedTokens()
    package var labels = ConnectionLabels.none
    /// The end of the last of ``issuedTokens`` that were issued before the owner changed, or `nil` if the owner never
    /// did. A search by account does not find these.
    var formerTokensUntil: Timestamp?

    /// The right of one worker to call Google for this grant.
    package internal(set) var lease: Lease?
}

extension Grant.RefreshToken {
    /// Returns this token with the key of a stored one, if it is the same token and was brought without its key.
    ///
    /// An app or an import that brings a token again might not know that it is bound.
    func bound(as stored: Self?) -> Self {
        guard bindingKeyID == nil, let marks, marks.digest == stored?.marks?.digest else { return self }
        var token = self
        token.bindingKeyID = stored?.bindingKeyID
        return token
    }
}

extension Grant.AccessToken {
    /// A longer lifetime of an access token is not trusted.
    ///
    /// Google's live for an hour, and at most twelve
    /// (https://cloud.google.com/iam/docs/create-short-lived-credentials-direct). A later expiry comes from a wrong
    /// clock or a typing error.
    static let maximumLifetime: Duration = .seconds(86_400)

    /// Returns the token with its expiry limited to a plausible one.
    func bounded(at now: Timestamp) -> Self {
        var token = self
        token.expiresAt = min(expiresAt, now + Self.maximumLifetime)
        return token
    }

    /// `true` if this stored token is live and was obtained after `late`: a worker was suspended with its
    /// answer, and another worker has refreshed the grant since.
    func isNewer(than late: Self, at now: Timestamp) -> Bool {
        obtainedAt > late.obtainedAt && obtainedAt <= now && expiresAt > now
    }

    /// Returns the token that expires later. A token that was stored by a clock ahead of this one does not count.
    static func later(of stored: Self?, and new: Self?, at now: Timestamp) -> Self? {
        guard let stored, stored.obtainedAt <= now else { return new ?? stored }
        guard let new else { return stored }
        return stored.expiresAt > new.expiresAt ? stored : new
    }
}
