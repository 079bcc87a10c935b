package import Base
package import Crypto

/// One sign-in of a user with its family of refresh tokens.
///
/// It ends by being removed.
///
/// A refresh token is kept as its SHA-256 hash. It changes only in `Session.swift`.
package struct Session: Hashable, Sendable {
    package let id: SessionID
    package internal(set) var userID: String
    let createdAt: Timestamp
    var expiresAt: Timestamp
    package internal(set) var family: TokenFamily
    /// The current tokens, sealed, for callers that present an earlier token within the grace, after which they are
    /// deleted.
    package internal(set) var successor: SealedSecret?
    /// The time after which ``Store/removeExpired(by:at:)`` deletes them.
    var successorUntil: Timestamp?
}

extension Session: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "session \(id)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The answer of a session to one of its refresh tokens.
package enum RotationOutcome: Hashable, Sendable {
    /// The new token is the current one. `isLateAnswer` as in ``TokenFamily/Decision/renew(isLateAnswer:)``.
    case rotated(isLateAnswer: Bool)
    /// The current tokens are returned again. `isRecorded` is `true` if the session has changed and must be stored.
    case repeated(SealedSecret, isRecorded: Bool)
    /// Two clients hold tokens of the family: it must end.
    case reused
    /// The family has expired.
    case expired
}

/// The changes of a session: the only place where its tokens change.
extension Session {
    /// The default time in which any token of the family gets the current tokens.
    package static let defaultGrace: Duration = .seconds(60)
    /// A longer grace cannot be set. ``Store/removeExpired(by:at:)`` deletes successors that are further ahead.
    package static let maximumGrace: Duration = .seconds(600)

    package static func start(
        id: SessionID,
        userID: String,
        tokenHash: [UInt8],
        expiresAt: Timestamp,
        at now: Timestamp,
        leaseTime: LeaseTime
    ) -> Session {
        Session(
            id: id,
            userID: userID,
            createdAt: now,
            expiresAt: expiresAt,
            family: TokenFamily(firstHash: tokenHash, at: leaseTime)
        )
    }

    /// `true` until the session expires.
    package func isLive(at now: Timestamp) -> Bool { now < expiresAt }

    /// Returns the decision about a presented token without a change. The caller must have verified its signature.
    package func decide(presented hash: [UInt8], leaseTime: LeaseTime, grace: Duration) -> TokenFamily.Decision {
        family.decide(presented: hash, canRepeat: successor != nil, at: leaseTime, grace: grace)
    }

    /// Decides about a presented token and applies the decision. The caller must have verified its signature. `hash`
    /// and `sealed` belong to the new tokens, which are used if the decision is to renew.
    package mutating func rotate(
        presented: [UInt8],
        to hash: [UInt8],
        successor sealed: SealedSecret,
        expiresAt end: Timestamp,
        at now: Timestamp,
        leaseTime: LeaseTime,
        grace: Duration
    ) -> RotationOutcome {
        guard isLive(at: now) else { return .expired }
        switch (decide(presented: presented, leaseTime: leaseTime, grace: grace), successor) {
        case (.repeatCurrent(let mustRecord), let current?):
            if mustRecord { family.recordRepetition(to: presented, at: leaseTime) }
            return .repeated(current, isRecorded: mustRecord)
        case (.renew(let isLateAnswer), _):
            family.renew(presented: presented, with: hash, at: leaseTime, grace: grace)
            successor = sealed
            successorUntil = now + grace
            expiresAt = end
            return .rotated(isLateAnswer: isLateAnswer)
        case (.reuse, _), (.repeatCurrent, nil): return .reused
        }
    }
}
