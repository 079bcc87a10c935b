package import Clocks
package import Secrets

/// One sign-in of a user and the family of refresh tokens that grew from it; it ends by being removed.
///
/// A refresh token is kept as its SHA-256 hash. It moves only in `Session+Life.swift`.
package struct Session: Hashable, Sendable {
    package let id: SessionID
    package let userID: String
    package let createdAt: Timestamp
    package internal(set) var expiresAt: Timestamp
    /// The hash of the refresh token that is good now.
    package internal(set) var currentHash: [UInt8]
    /// The hash of the one before it.
    package internal(set) var previousHash: [UInt8]?
    package internal(set) var rotatedAt: Timestamp?
    /// The token that is good now, for whoever asks again within the grace; wiped afterwards.
    package internal(set) var successor: SealedSecret?

    /// Restores a stored session field by field; a new one is made by ``start(id:userID:tokenHash:expiresAt:at:)``.
    package init(
        id: SessionID,
        userID: String,
        createdAt: Timestamp,
        expiresAt: Timestamp,
        currentHash: [UInt8],
        previousHash: [UInt8]?,
        rotatedAt: Timestamp?,
        successor: SealedSecret?
    ) {
        self.id = id
        self.userID = userID
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.currentHash = currentHash
        self.previousHash = previousHash
        self.rotatedAt = rotatedAt
        self.successor = successor
    }
}

extension Session: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "session \(id)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
