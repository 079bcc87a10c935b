package import Clocks

/// What a body given to ``GrantStore/transact(_:)`` can do.
package protocol StoreTransaction {
    /// The clock of this store's leases.
    var leaseTime: LeaseTime { get }

    /// Says what the body is about to read, so that a store on another machine can fetch it all in one journey.
    ///
    /// Nothing has to be said, and nothing that was said has to be read.
    func willRead(grants ids: [GrantID], healthOf clients: [String]) throws

    func grant(_ id: GrantID) throws -> Grant?
    func grant(ofUser userID: String) throws -> Grant?

    /// Grants other than `id` that hold a refresh token for the same account at Google (by its id, else by e-mail without case).
    func grants(sharingAccountWith grant: Grant) throws -> [Grant]

    /// Grants, but those of deleted users, whose owner is known to be this account at Google.
    func grants(ofGoogleUser googleUserID: String) throws -> [Grant]

    /// The tokens that refreshes brought for an account at Google: of the grants with its id, and of those without an id that
    /// have its e-mail address.
    ///
    /// Grants whose owner has changed count for every account while a token from before lives. Nothing else of a grant is
    /// read, so that a damaged one does not keep users from signing in.
    func issuedTokens(toAccount owner: Grant.Owner, at now: Timestamp) throws -> [IssuedTokens]

    /// Grants, but those of deleted users, whose stored refresh token has this mark.
    func grants(withRefreshTokenMark mark: TokenMark) throws -> [Grant]

    /// When the app, or an import, last brought tokens for a grant.
    func lastConnection(of id: GrantID) throws -> Timestamp?

    /// Adds a grant, and its user where there is none. A user has one grant, and one that was deleted has none: else it
    /// throws.
    func insert(_ grant: Grant) throws
    /// Stores a grant in the place of the one with its id. The grant of a deleted user is not brought back: that throws.
    func update(_ grant: Grant) throws
    /// Adds to a grant's history, and to the outbox where the store keeps notices and the event calls for one.
    ///
    /// Of the history the last ``Retention/eventsPerGrant`` events stay, and the last connection, however old.
    func record(_ event: GrantEvent) throws

    /// Adds a notice about a user to the outbox, if the store keeps notices.
    func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) throws

    /// The health of a client: bytes that only the engine understands.
    func clientHealth(_ clientID: String) throws -> [UInt8]?
    func setClientHealth(_ health: [UInt8], of clientID: String) throws

    func user(_ id: String) throws -> User?
    func user(withGoogleUserID googleUserID: String) throws -> User?
    /// Users with this e-mail address, without regard to the case of A to Z, in the order of their ids.
    func users(withEmail email: String) throws -> [User]
    /// Adds a user; an id, or an account at Google, that is another's throws.
    func insert(_ user: User) throws
    func update(_ user: User) throws

    func session(_ id: SessionID) throws -> Session?
    /// Adds a session of a stored user.
    func insert(_ session: Session) throws
    func update(_ session: Session) throws
    /// Ends a session, if it stands.
    func endSession(_ id: SessionID) throws
    /// Ends all sessions of a user and answers how many there were.
    func endSessions(ofUser userID: String) throws -> Int

    /// Remembers the identifier of a security event; answers `false` when it is known already.
    func remember(securityEvent identifier: String, at now: Timestamp) throws -> Bool
}

extension StoreTransaction {
    /// For stores to which every read is near.
    package func willRead(grants ids: [GrantID], healthOf clients: [String]) throws {}
}
