internal import Base
internal import Storage

/// A caller with a valid token, and the user as stored when the request came.
struct AuthenticatedCaller: Sendable {
    let claims: AccessClaims
    let outcome: AuthenticationRules.Outcome

    var userID: String { claims.userID }
}

extension AuthenticatedCaller {
    /// Decides again from the data stored now, and stores the fields that the claims add to the user.
    func storeUser(in transaction: any StoreTransaction, at now: Timestamp) throws -> User {
        let user = try transaction.user(userID)
        let session = try claims.sessionID.flatMap { try transaction.session($0) }
        switch try AuthenticationRules.decide(claims, user: user, session: session, at: now) {
        case .stored(let user): return user
        case .new(let new):
            try transaction.insert(new)
            return new
        case .completed(let user):
            try transaction.update(user)
            return user
        }
    }
}
