internal import Base
internal import Storage

/// Decides from the stored data whether a valid access token is accepted.
enum AuthenticationRules {
    enum Outcome: Hashable, Sendable {
        /// A stored user, unchanged.
        case stored(User)
        /// A user who is not stored yet, created from the claims: PayPulse's login signs users up itself.
        case new(User)
        /// A stored user, completed from the claims, such as one that an import of grants created.
        case completed(User)
    }

    static func decide(
        _ claims: AccessClaims,
        user: User?,
        session: Session?,
        at now: Timestamp
    ) throws(AuthenticationRefusal) -> Outcome {
        // A tombstone is kept until the last token that names the user has expired.
        if user?.isDeleted == true { throw .deleted }
        if let sessionID = claims.sessionID {
            guard let session, session.id == sessionID, session.userID == claims.userID, session.isLive(at: now) else {
                throw .invalid
            }
        }
        // A correct store never keeps a session longer than its user.
        if user == nil, claims.sessionID != nil { throw .invalid }
        if user?.isActive == false { throw .inactive }
        let former = user ?? User(id: claims.userID, createdAt: now)
        guard claims.sessionID == nil else { return .stored(former) }
        let completed = complete(former, by: claims, at: now)
        guard user != nil else { return .new(completed) }
        return completed == former ? .stored(former) : .completed(completed)
    }

    /// Adds what the backend's token says: it can contain more than the one that the user was created from.
    private static func complete(_ user: User, by claims: AccessClaims, at now: Timestamp) -> User {
        var user = user
        user.accept(tokenUntil: claims.expiresAt, at: now)
        if user.name?.isEmpty ?? true { user.name = claims.name ?? user.name }
        guard let email = claims.email else { return user }
        let isNewlyVerified = user.email == email && user.emailIsVerified != true && claims.emailIsVerified == true
        guard user.email == nil || isNewlyVerified else { return user }
        user.email = email
        user.emailIsVerified = claims.emailIsVerified
        return user
    }
}
