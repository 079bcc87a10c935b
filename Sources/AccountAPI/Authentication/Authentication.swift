internal import Clocks
internal import Store

/// Whom a good access token lets in, decided by what is stored.
enum Authentication {
    enum Standing: Hashable, Sendable {
        case known(User)
        /// PayPulse signs its users up elsewhere: one who was not seen before is made of the claims.
        case new(User)
        /// The claims tell what is stored without it, as of a user whom an import of grants brought.
        case completed(User)
    }

    static func decide(
        _ claims: AccessClaims,
        user: User?,
        session: Session?,
        at now: Timestamp
    ) throws(AuthenticationRefusal) -> Standing {
        // A tombstone stands until it is swept, when the last token that names the user has expired.
        if user?.isDeleted == true { throw .deleted }
        if let sessionID = claims.sessionID {
            guard let session, session.id == sessionID, session.userID == claims.userID, session.isLive(at: now) else {
                throw .invalid
            }
        }
        guard let user else {
            // A session outlives its user in no store that keeps the rules.
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
        guard claims.sessionID == nil, let email = claims.email else { return .known(user) }
        // The backend's token of today may know more than the one that the user was created from.
        let isNewlyVerified = user.email == email && user.emailIsVerified != true && claims.emailIsVerified == true
        guard user.email == nil || isNewlyVerified else { return .known(user) }
        var completed = user
        completed.email = email
        completed.emailIsVerified = claims.emailIsVerified
        return .completed(completed)
    }
}
