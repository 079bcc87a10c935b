package import Clocks
package import Secrets

/// One user's consent at Google, as stored.
///
/// Its tokens are sealed; its state moves only in `Grant+Life.swift`.
package struct Grant: Hashable, Sendable {
    /// Who the grant belongs to at Google, as far as it is known.
    package struct Owner: Hashable, Sendable {
        package var googleUserID: String?
        package var email: String?
        package var name: String?
        package var emailIsVerified: Bool?

        package init(
            googleUserID: String? = nil,
            email: String? = nil,
            name: String? = nil,
            emailIsVerified: Bool? = nil
        ) {
            self.googleUserID = googleUserID
            self.email = email
            self.name = name
            self.emailIsVerified = emailIsVerified
        }
    }

    /// A sealed access token and what is known of it.
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

    /// A sealed refresh token and what is known of it; ``TokenVault`` makes new ones.
    package struct RefreshToken: Hashable, Sendable {
        package var sealed: SealedSecret
        /// What a security event names it by; `nil` for one that was stored before there were marks.
        package var marks: TokenMarks?
        /// The instant at which it dies of itself, where Google told it.
        package var expiresAt: Timestamp?

        package init(sealed: SealedSecret, marks: TokenMarks? = nil, expiresAt: Timestamp? = nil) {
            self.sealed = sealed
            self.marks = marks
            self.expiresAt = expiresAt
        }
    }

    package let id: GrantID
    package let userID: String
    package let createdAt: Timestamp

    package var clientID: String
    package var owner: Owner
    /// The scopes of the last answer, separated by spaces.
    package var scope: String

    package internal(set) var state: GrantState
    package internal(set) var reason: GrantReason
    /// Since when the grant is in its state.
    package internal(set) var since: Timestamp
    /// The fence: the version of the stored refresh token.
    ///
    /// An answer is written only where the version it read still stands.
    package internal(set) var generation: Int64

    package internal(set) var refreshToken: RefreshToken?
    package internal(set) var accessToken: AccessToken?

    /// When something is to be done about the grant; `nil` when nothing ever is.
    package internal(set) var dueAt: Timestamp?
    /// Failures in a row.
    package internal(set) var attempts: Int
    /// When the present row of failures began.
    package internal(set) var failingSince: Timestamp?
    package internal(set) var lastSuccessAt: Timestamp?
    package internal(set) var lastAttemptAt: Timestamp?
    /// Whether a refresh with the stored refresh token, or with one it was rotated from, ever succeeded.
    package internal(set) var isProven: Bool
    /// Since when a revocation at Google is asked for; the tokens are wiped when it is done, or a day later.
    package internal(set) var revocationAskedAt: Timestamp?

    /// The first refusal of the present row that is doubted, and that awaits a second opinion.
    package internal(set) var suspectedSince: Timestamp?
    /// Successful refreshes in a row that each came long before the schedule asks for one.
    package internal(set) var quickRefreshes: Int
    /// When a worker found that the answer to an earlier request was never stored; `nil` once a refresh has succeeded.
    package internal(set) var answerLostAt: Timestamp?
    /// The claims of the last rotated refresh tokens that were stored.
    package internal(set) var rotationClaims: RotationClaims
    package internal(set) var issuedTokens: IssuedTokens
    /// The end of the last of ``issuedTokens`` that were issued before the owner changed; `nil` if the owner never did.
    ///
    /// A look-up by account no longer finds these.
    package internal(set) var formerTokensUntil: Timestamp?

    /// Who is calling Google for this grant now.
    package internal(set) var lease: Lease?

    /// Restores a stored grant field by field; the parts that make new ones call `Grant.connected`.
    package init(
        id: GrantID,
        userID: String,
        createdAt: Timestamp,
        clientID: String,
        owner: Owner,
        scope: String,
        state: GrantState,
        reason: GrantReason,
        since: Timestamp,
        generation: Int64,
        refreshToken: RefreshToken?,
        accessToken: AccessToken?,
        dueAt: Timestamp?,
        attempts: Int,
        failingSince: Timestamp?,
        lastSuccessAt: Timestamp?,
        lastAttemptAt: Timestamp?,
        isProven: Bool,
        revocationAskedAt: Timestamp?,
        suspectedSince: Timestamp? = nil,
        quickRefreshes: Int = 0,
        answerLostAt: Timestamp? = nil,
        rotationClaims: RotationClaims = RotationClaims(),
        issuedTokens: IssuedTokens = IssuedTokens(),
        formerTokensUntil: Timestamp? = nil,
        lease: Lease?
    ) {
        self.id = id
        self.userID = userID
        self.createdAt = createdAt
        self.clientID = clientID
        self.owner = owner
        self.scope = scope
        self.state = state
        self.reason = reason
        self.since = since
        self.generation = generation
        self.refreshToken = refreshToken
        self.accessToken = accessToken
        self.dueAt = dueAt
        self.attempts = attempts
        self.failingSince = failingSince
        self.lastSuccessAt = lastSuccessAt
        self.lastAttemptAt = lastAttemptAt
        self.isProven = isProven
        self.revocationAskedAt = revocationAskedAt
        self.suspectedSince = suspectedSince
        self.quickRefreshes = quickRefreshes
        self.answerLostAt = answerLostAt
        self.rotationClaims = rotationClaims
        self.issuedTokens = issuedTokens
        self.formerTokensUntil = formerTokensUntil
        self.lease = lease
    }
}
