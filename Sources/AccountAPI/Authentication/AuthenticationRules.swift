internal import Clocks
internal import Store

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
        guard let user else {
            // A correct store never keeps a session longer than its user.
            guard claims.sessionID == nil else { throw .invalid }
            return .new(
                User(
                    id: claims.userID,
                    createdAt: now,
                    email: claims.email,
                    emailIsVerified: claims.email == nil ? nil : claims.emailIsVerified
                )
            )
        }
        guard user.isActive else { throw .inactive }
        guard claims.sessionID == nil, let email = claims.email else { return .stored(user) }
        // The backend's current token may contain more than the one that the user was created from.
        let isNewlyVerified = user.email == email && user.emailIsVerified != true && claims.emailIsVerified == true
        guard user.email == nil || isNewlyVerified else { return .stored(user) }
        var completed = user
        completed.email = email
        completed.emailIsVerified = claims.emailIsVerified
        return .completed(completed)
    }
}
