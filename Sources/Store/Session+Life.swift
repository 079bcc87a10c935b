package import Clocks
package import Secrets

/// What became of a refresh token of the app's own that somebody presented.
package enum RotationOutcome: Hashable, Sendable {
    /// It was the one that is good; the new one is now.
    case rotated
    /// It was replaced a moment ago: its successor is answered once more, for an answer may have been lost.
    case repeated(SealedSecret)
    /// It was replaced before that, so two hold tokens of one family, and one of them is a thief: the family must end.
    case reused
    /// The family is over.
    case expired
}

/// The life of a session: the only place where its tokens change.
extension Session {
    /// How long after a rotation the same successor is answered.
    package static let grace: Duration = .seconds(10)

    package static func start(
        id: SessionID,
        userID: String,
        tokenHash: [UInt8],
        expiresAt: Timestamp,
        at now: Timestamp
    ) -> Session {
        Session(
            id: id,
            userID: userID,
            createdAt: now,
            expiresAt: expiresAt,
            currentHash: tokenHash,
            previousHash: nil,
            rotatedAt: nil,
            successor: nil
        )
    }

    /// Whether the session still stands.
    package func isLive(at now: Timestamp) -> Bool { now < expiresAt }

    /// Puts a new refresh token in the place of the presented one, where that one may still be used.
    ///
    /// What is presented must have proven its signature: any other hash than the two that are known ends the family.
    package mutating func rotate(
        presented hash: [UInt8],
        to newHash: [UInt8],
        successor sealed: SealedSecret,
        expiresAt end: Timestamp,
        at now: Timestamp
    ) -> RotationOutcome {
        guard isLive(at: now) else { return .expired }
        if ConstantTime.areEqual(hash, currentHash) {
            previousHash = currentHash
            currentHash = newHash
            rotatedAt = now
            successor = sealed
            expiresAt = end
            return .rotated
        }
        return successor(repeatedFor: hash, at: now).map { .repeated($0) } ?? .reused
    }

    /// The sealed successor for the token that was replaced last, while the grace of that rotation lasts; else `nil`.
    package func successor(repeatedFor hash: [UInt8], at now: Timestamp) -> SealedSecret? {
        guard let previousHash, ConstantTime.areEqual(hash, previousHash), isInGrace(at: now) else { return nil }
        return successor
    }

    /// Forgets the sealed successor once nobody is to be answered it any more.
    mutating func wipeSuccessor(at now: Timestamp) -> Bool {
        guard successor != nil, !isInGrace(at: now) else { return false }
        successor = nil
        return true
    }

    /// A rotation that lies in the future is one before a step of the clock: the grace holds on both sides of it.
    private func isInGrace(at now: Timestamp) -> Bool {
        guard let rotatedAt else { return false }
        return now < rotatedAt + Self.grace && now > rotatedAt - Self.grace
    }
}
