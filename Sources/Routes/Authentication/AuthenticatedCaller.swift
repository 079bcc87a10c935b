internal import Base
internal import HTTPServer
internal import Storage

/// A caller with a valid token.
struct AuthenticatedCaller: Sendable {
    let claims: AccessClaims
    /// The user as stored when the request came, or `nil` if the claims create or complete the user.
    let storedUser: User?

    var userID: String { claims.userID }

    /// Repeats the check of the token inside the transaction: the user or the session can have ended since. Returns the
    /// user as it should be stored.
    func check(in transaction: any StoreTransaction, at now: Timestamp) throws -> User {
        try user(stored: try transaction.user(userID), in: transaction, at: now)
    }

    /// Repeats the check, and stores the fields that the claims add to the user.
    func storeUser(in transaction: any StoreTransaction, at now: Timestamp) throws -> User {
        let stored = try transaction.user(userID)
        let user = try user(stored: stored, in: transaction, at: now)
        if stored == nil {
            try transaction.insert(user)
        } else if user != stored {
            try transaction.update(user)
        }
        return user
    }

    private func user(stored: User?, in transaction: any StoreTransaction, at now: Timestamp) throws -> User {
        var session: Session?
        if let id = claims.sessionID { session = try transaction.session(id, ofUser: userID) }
        return try claims.user(stored: stored, session: session, at: now)
    }
}

extension ServerRequest {
    func bearerToken() throws(AppError) -> String {
        switch BearerToken(of: self) {
        case .missing: throw .missingToken
        case .malformed: throw .invalidToken
        case .present(let token): return token
        }
    }
}
