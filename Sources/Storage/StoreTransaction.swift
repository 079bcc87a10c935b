package import Base

/// The reads and writes within one transaction of ``Store/transact(_:)``.
package protocol StoreTransaction {
    /// The clock of this store's leases.
    var leaseTime: LeaseTime { get }

    /// Announces the reads of the body, so that a store on another machine can fetch all rows in one round trip.
    ///
    /// The announcement is optional, and announced rows do not have to be read.
    func willRead(grants ids: [GrantID], healthOf clients: [String]) throws

    func grant(_ id: GrantID) throws -> Grant?
    func grant(ofUser userID: String, connection: ConnectionID) throws -> Grant?
    /// Returns all grants of a user, that of the default connection first.
    func grants(ofUser userID: String) throws -> [Grant]

    /// Returns other grants than `id` that hold a refresh token for this account at Google (by its id, else by e-mail
    /// without regard to case).
    func grants(withTokenOf account: Grant.Owner, except id: GrantID?) throws -> [Grant]

    /// Returns the grants of this account at Google, without those of deleted users.
    func grants(ofGoogleUser googleUserID: String) throws -> [Grant]

    /// Returns the tokens that refreshes returned for an account at Google: of the grants with its id, and of those
    /// without an id that have its e-mail address.
    ///
    /// Grants whose owner has changed count for every account until their earlier tokens expire. No other column of a
    /// grant is read, so that a damaged column does not prevent a sign-in.
    func issuedTokens(toAccount owner: Grant.Owner, at now: Timestamp) throws -> [IssuedTokens]

    /// Returns the grants whose stored refresh token has this mark, without those of deleted users.
    func grants(withRefreshTokenMark mark: TokenMark) throws -> [Grant]

    /// Returns the time at which the app, or an import, last brought tokens for a grant.
    func lastConnection(of id: GrantID) throws -> Timestamp?

    /// Returns what is stored about users for whom an import brings grants, without the grants of deleted ones.
    func standings(ofUsers ids: [String]) throws -> UserStandings

    /// Adds a grant, and its user if there is none.
    ///
    /// Throws if the user has a grant with this connection or this account already, or was deleted.
    func insert(_ grant: Grant) throws
    /// Adds grants of different connections with their events, as if one after the other.
    func insert(_ additions: [NewGrant]) throws
    /// Replaces the stored grant with the same id.
    ///
    /// Throws if this would bring back the grant of a deleted user.
    func update(_ grant: Grant) throws
    /// Replaces a grant as a claim returned it by a changed copy, unless the stored grant has changed since.
    ///
    /// Returns `false`, and writes nothing, if the stored grant differs in anything but the end of its lease. A lease
    /// under another claim is such a difference. The caller then reads the grant and decides again.
    func replace(_ claimed: Grant, by grant: Grant) throws -> Bool
    /// Adds an event to a grant's history, and a notice to the outbox if the store keeps notices and the event
    /// changes the profile.
    ///
    /// The history keeps the last ``Retention/eventsPerGrant`` events, and the last connection, however old.
    func record(_ event: GrantEvent) throws

    /// Adds a notice about a user to the outbox, if the store keeps notices. It has the trace of the request that the
    /// transaction is for.
    func notify(_ content: Notice.Content, ofUser userID: String, at now: Timestamp) throws

    /// Returns the health of a client: bytes that only the engine reads.
    func clientHealth(_ clientID: String) throws -> [UInt8]?
    func setClientHealth(_ health: [UInt8], of clientID: String) throws
    /// Removes and returns the plain refreshes of a client that its stored health lacks, for the caller to add.
    ///
    /// They are as complete as the health itself: all that were stored before this transaction began to read.
    func takeUncountedSuccesses(of clientID: String) throws -> [UncountedSuccesses]

    func user(_ id: String) throws -> User?
    func user(withGoogleUserID googleUserID: String) throws -> User?
    /// Returns the users with this e-mail address, without regard to the case of A to Z, sorted by id.
    func users(withEmail email: String) throws -> [User]
    /// Adds a user, or throws if another user has the id, or the account at Google.
    func insert(_ user: User) throws
    func update(_ user: User) throws
    /// Moves the sessions of a user, and the grants, to another stored user without a grant, and removes the user.
    func move(user id: String, to other: String, at now: Timestamp) throws

    func session(_ id: SessionID, ofUser userID: String) throws -> Session?
    /// Adds a session of a stored user.
    func insert(_ session: Session) throws
    func update(_ session: Session) throws
    /// Ends a session, if it exists.
    func endSession(_ id: SessionID, ofUser userID: String) throws
    /// `true` if a session of the user is stored.
    func hasSession(ofUser userID: String) throws -> Bool
    /// Ends all sessions of a user and returns their number.
    func endSessions(ofUser userID: String) throws -> Int

    /// Stores an identifier that must count only once, or returns `false` if it is stored already.
    ///
    /// These are the ids of security events, used ID tokens, used refresh tokens of a former backend, refresh tokens
    /// that a user has left or a response has replaced, disconnects without a grant, the dates of imported tokens, and
    /// users who were joined with another.
    func recordOnce(_ identifier: String, at now: Timestamp) throws -> Bool
    /// Returns the time with which an identifier is stored, or `nil` if it is not.
    func time(ofIdentifier identifier: String) throws -> Timestamp?
    /// Returns the first of the identifiers that begin with this prefix, which ends with a colon.
    func identifier(from prefix: String) throws -> String?
    /// Removes all but the latest of the identifiers that begin with this prefix, which ends with a colon.
    func keepLast(_ count: Int, identifiersFrom prefix: String) throws
}

extension StoreTransaction {
    /// Returns other grants that hold a refresh token for the same account at Google.
    func grants(sharingAccountWith grant: Grant) throws -> [Grant] {
        try grants(withTokenOf: grant.owner, except: grant.id)
    }

    /// `true` if an identifier is stored.
    func hasRecorded(_ identifier: String) throws -> Bool {
        try time(ofIdentifier: identifier) != nil
    }

    /// Does nothing: the default for stores whose reads need no round trip.
    package func willRead(grants ids: [GrantID], healthOf clients: [String]) throws {}

    /// Reads one user after the other: the default for stores whose reads need no round trip.
    package func standings(ofUsers ids: [String]) throws -> UserStandings {
        var standings = UserStandings()
        for id in ids {
            standings[id].isDeleted = try user(id)?.isDeleted == true
            guard !standings[id].isDeleted else { continue }
            standings[id].grants = try grants(ofUser: id)
            standings[id].disconnectedAt = try disconnectTime(ofUserWithoutGrant: id)
        }
        return standings
    }

    /// Adds one grant after the other: the default for stores whose writes need no round trip.
    package func insert(_ additions: [NewGrant]) throws {
        for addition in additions {
            try insert(addition.grant)
            for event in addition.events { try record(event) }
        }
    }

    /// Returns none: the default for stores without plain refreshes.
    package func takeUncountedSuccesses(of clientID: String) throws -> [UncountedSuccesses] { [] }

    /// Reads the stored grant and compares it: the default for stores that do not compare row versions.
    package func replace(_ claimed: Grant, by grant: Grant) throws -> Bool { try replaceIfSame(claimed, by: grant) }

    /// Replaces a grant if the stored one, which is read as a whole, is the same.
    func replaceIfSame(_ claimed: Grant, by grant: Grant) throws -> Bool {
        guard let stored = try self.grant(claimed.id), stored.isSame(asClaimed: claimed) else { return false }
        try update(grant)
        return true
    }
}

/// A successful refresh whose decision depends on the claimed grant alone.
///
/// A store can write it without reading the grant again, if it can see that the grant is still as it was claimed.
package struct PlainRefresh: Sendable {
    /// The grant as the claim returned it.
    package let claimed: Grant
    /// The grant as it is to be stored, without a lease.
    package let refreshed: Grant
    /// The fingerprint of the client secret that the request contained.
    package let secretFingerprint: UInt32

    package init(claimed: Grant, refreshed: Grant, secretFingerprint: UInt32) {
        self.claimed = claimed
        self.refreshed = refreshed
        self.secretFingerprint = secretFingerprint
    }
}

/// Plain refreshes of one client that its stored health does not contain yet.
package struct UncountedSuccesses: Hashable, Sendable {
    package var at: Timestamp
    package var count: Int
    /// The fingerprint of the client secret that they were made with.
    package var secretFingerprint: UInt32
}
