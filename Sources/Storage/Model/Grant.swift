package import Base
package import Crypto

/// One user's consent at Google, as stored.
///
/// Its tokens are sealed. Its state changes only in `Grant+Life.swift` and `Grant+Ending.swift`.
package struct Grant: Hashable, Sendable {
    /// The Google account of a grant, as far as it is known.
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
        /// The end of the token's own lifetime, if Google gave it.
        package var expiresAt: Timestamp?
        /// The time at which the app brought the token after its user's consent, or `nil` for an imported one. A token
        /// that replaces it in an answer belongs to the same consent.
        package internal(set) var consentedAt: Timestamp?
        /// `true` if the backend was notified that the token, or one that it replaced in an answer, expires soon.
        package internal(set) var isExpiryNoticed: Bool

        package init(
            sealed: SealedSecret,
            marks: TokenMarks? = nil,
            expiresAt: Timestamp? = nil,
            consentedAt: Timestamp? = nil,
            isExpiryNoticed: Bool = false
        ) {
            self.sealed = sealed
            self.marks = marks
            self.expiresAt = expiresAt
            self.consentedAt = consentedAt
            self.isExpiryNoticed = isExpiryNoticed
        }
    }

    package let id: GrantID
    package internal(set) var userID: String
    package let createdAt: Timestamp

    package var clientID: String
    package var owner: Owner
    /// The scopes of the last answer, separated by spaces.
    package var scope: String

    package internal(set) var state: GrantState
    package internal(set) var reason: GrantReason
    /// The time since which the grant is in its state.
    package internal(set) var since: Timestamp
    /// The fence: the version of the stored refresh token. An answer is stored only if the version it was requested
    /// with is still current.
    package internal(set) var generation: Int64

    package internal(set) var refreshToken: RefreshToken?
    package internal(set) var accessToken: AccessToken?

    /// The time of the next action for the grant, or `nil` if there is none.
    package internal(set) var dueAt: Timestamp?
    /// The number of failures in a row.
    package internal(set) var attempts = 0
    /// The time of the first failure in the current row.
    package internal(set) var failingSince: Timestamp?
    package internal(set) var lastSuccessAt: Timestamp?
    package internal(set) var lastAttemptAt: Timestamp?
    /// `true` if a refresh with the stored refresh token, or with one it was rotated from, ever succeeded.
    package internal(set) var isProven = false
    /// The time at which a revocation at Google was requested. The tokens are deleted when it is done, or a day later.
    package internal(set) var revocationAskedAt: Timestamp?

    /// The time of the first refusal in the current row that is in doubt and waits for confirmation.
    package internal(set) var suspectedSince: Timestamp?
    /// The number of successful refreshes in a row that each came long before their scheduled time.
    package internal(set) var quickRefreshes = 0
    /// The time at which a worker found that the answer to an earlier request was never stored, or `nil` once a refresh
    /// has succeeded.
    package internal(set) var answerLostAt: Timestamp?
    /// The claims whose answers brought the last stored rotated refresh tokens, the latest last.
    ///
    /// A commit whose confirmation was lost is repeated, and a spill file is read again. The rotated token might have
    /// been replaced since: by the next refresh, by the app, or by the same token sealed with another key. Its claim
    /// still shows that it was stored, so that only a token that was never stored counts as lost.
    var rotationClaims: [Int64] = []
    package internal(set) var issuedTokens = IssuedTokens()
    /// The end of the last of ``issuedTokens`` that were issued before the owner changed, or `nil` if the owner never
    /// did. A search by account does not find these.
    var formerTokensUntil: Timestamp?

    /// The right of one worker to call Google for this grant.
    package internal(set) var lease: Lease?
}

/// The permanent name of a grant: 63 random bits.
///
/// Its high bits are the grant's phase, which sets its home instant in each period: rows that are due together are
/// close together in a table ordered by id.
package struct GrantID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    package static func random(from source: any RandomSource) -> GrantID {
        GrantID(rawValue: Int64(source.nextBits() >> 1))
    }

    // A refresh looks its grant up a dozen times. The usual way, through a `Hasher`, takes three times as many
    // instructions for the same keyed hash.
    // swift-format-ignore: NoLeadingUnderscores
    package func _rawHashValue(seed: Int) -> Int { rawValue._rawHashValue(seed: seed) }

    /// Parses the form of ``description``, in either case.
    package init?(_ text: String) {
        self.init(digits: Array(text.utf8)[...])
    }

    /// Parses the form that ``appendDigits(to:)`` appends.
    init?(digits: ArraySlice<UInt8>) {
        guard digits.count == 16 else { return nil }
        var bits: UInt64 = 0
        for digit in digits {
            guard let value = Hexadecimal.value(of: digit) else { return nil }
            bits = bits << 4 | UInt64(value)
        }
        guard let rawValue = Int64(exactly: bits) else { return nil }
        self.init(rawValue: rawValue)
    }

    /// The grant's position in 0..<1 among all grants, both in the table and in each period.
    package var phase: Double { Double(rawValue >> 31) * 0x1p-32 }

    package static func < (left: GrantID, right: GrantID) -> Bool { left.rawValue < right.rawValue }

    /// Sixteen hexadecimal digits: JSON readers round whole numbers beyond 2^53, so an id is never printed as a number.
    package var description: String {
        var digits: [UInt8] = []
        digits.reserveCapacity(16)
        appendDigits(to: &digits)
        return String(decoding: digits, as: UTF8.self)
    }

    /// Appends the bytes of ``description``.
    func appendDigits(to text: inout [UInt8]) {
        for shift in stride(from: 60, through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: rawValue >> shift) & 0xf
            text.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + (digit - 10))
        }
    }
}

/// The state of a grant, which decides the next action.
package enum GrantState: String, CaseIterable, Sendable, Codable {
    /// The last refresh, or the app's own token, is good. Next: `retrying`, `suspended`, `reauthRequired`,
    /// `disconnected`.
    case active
    /// The last attempts failed for reasons that might pass, or wait for confirmation. Next: any.
    case retrying
    /// An administrator or a policy blocks it, and can lift the block: probed once a day. Next: any.
    case suspended
    /// Only the user can repair it, by signing in again. Next: as for `disconnected`.
    case reauthRequired = "reauth_required"
    /// Ended, because Google said so or the user asked. Next: `active` when the app brings tokens, or `retrying` if the
    /// answer that ended it turns out to be part of a wave.
    case disconnected

    /// `true` if the user's profile shows the account as connected.
    package var isConnected: Bool { self == .active || self == .retrying }

    /// `true` if no refresh is sent while the grant is in this state.
    package var endsRefreshes: Bool { self == .reauthRequired || self == .disconnected }

    /// The states of which ``isConnected`` is true, as SQL lists them.
    static let connectedList = allCases.filter(\.isConnected).sqlList
    /// The states of which ``endsRefreshes`` is true, as SQL lists them.
    static let refreshEndingList = allCases.filter(\.endsRefreshes).sqlList
}

/// The grants that a list shows: those that fit everything that is set.
package struct GrantFilter: Equatable, Sendable {
    package var state: GrantState?
    package var reason: GrantReason?
    package var clientID: String?
    /// `true` for connected grants without a valid access token, as ``ExpiredGrants`` counts them.
    package var isExpired = false
    /// The earliest time at which the grant came into its state.
    package var since: Timestamp?

    package init(
        state: GrantState? = nil,
        reason: GrantReason? = nil,
        clientID: String? = nil,
        isExpired: Bool = false,
        since: Timestamp? = nil
    ) {
        self.state = state
        self.reason = reason
        self.clientID = clientID
        self.isExpired = isExpired
        self.since = since
    }

    /// `true` if the state alone decides, which the store finds by an index.
    package var isOfStateOnly: Bool { self == GrantFilter(state: state) }

    package func matches(_ grant: Grant, at now: Timestamp) -> Bool {
        if let state, grant.state != state { return false }
        if let reason, grant.reason != reason { return false }
        if let clientID, grant.clientID != clientID { return false }
        if let since, grant.since < since { return false }
        return !isExpired || grant.isExpired(at: now)
    }
}

extension Grant {
    /// `true` if it is connected without a valid access token.
    fileprivate func isExpired(at now: Timestamp) -> Bool {
        guard state.isConnected else { return false }
        guard let accessToken else { return since <= now }
        return accessToken.expiresAt <= now
    }
}

extension Grant.AccessToken {
    /// The longest lifetime of an access token that is trusted.
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

extension Grant.Owner {
    /// Replaces the fields that the other owner has.
    mutating func merge(_ other: Self) {
        googleUserID = other.googleUserID ?? googleUserID
        email = other.email ?? email
        name = other.name ?? name
        emailIsVerified = other.emailIsVerified ?? emailIsVerified
    }
}
