package import Base
package import Crypto

/// One sign-in of a user with its family of refresh tokens; it ends by being removed.
///
/// A refresh token is kept as its SHA-256 hash. It changes only in `Session+Life.swift`.
package struct Session: Hashable, Sendable {
    package let id: SessionID
    package internal(set) var userID: String
    package let createdAt: Timestamp
    package internal(set) var expiresAt: Timestamp
    package internal(set) var family: TokenFamily
    /// The current tokens, sealed, for callers that present an earlier token within the grace; deleted after it.
    package internal(set) var successor: SealedSecret?
    /// The time after which ``AccountStore/removeExpired(at:)`` deletes them.
    package internal(set) var successorUntil: Timestamp?

    /// Restores a stored session field by field; a new one comes from
    /// ``start(id:userID:tokenHash:expiresAt:at:leaseTime:)``.
    package init(
        id: SessionID,
        userID: String,
        createdAt: Timestamp,
        expiresAt: Timestamp,
        family: TokenFamily,
        successor: SealedSecret?,
        successorUntil: Timestamp?
    ) {
        self.id = id
        self.userID = userID
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.family = family
        self.successor = successor
        self.successorUntil = successorUntil
    }
}

extension Session: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "session \(id)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
