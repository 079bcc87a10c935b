internal import Base
internal import Crypto
internal import Scheduler
internal import Storage
internal import Telemetry

/// The sessions of apps that signed in with Google: begun, rotated and ended, each in one transaction.
///
///     let sessions = AppSessions(dependencies: dependencies)
///     let first = try await sessions.begin(as: identity, provenBy: proof)
///     let second = try await sessions.rotate(first.refreshToken.reveal())
struct AppSessions: Sendable {
    let dependencies: AppRoutes.Dependencies

    /// Signs in the owner of a Google account, and makes an unknown owner a user.
    func begin(as identity: GoogleIdentity, provenBy proof: SignInProof) async throws -> SessionTokenPair {
        let now = dependencies.time.now
        let id = SessionID.random(from: dependencies.random)
        let newUserID = dependencies.random.userID()
        return try await dependencies.store.transact { transaction in
            let stored = try dependencies.emailLinking.user(for: identity, in: transaction)
            try proof.check(in: transaction, owner: identity.owner, stored: stored, at: now)
            var user = stored ?? User(id: newUserID, createdAt: now)
            if stored == nil { user.isFromSignIn = true }
            guard user.isActive else { throw AppError.inactiveUser }
            user.signIn(as: identity.owner, picture: identity.picture, at: now)
            if stored == nil { try transaction.insert(user) } else { try transaction.update(user) }
            let pair = try tokenPair(for: user, session: id, at: now)
            let session = Session.start(
                id: id,
                userID: user.id,
                tokenHash: SessionTokenPair.hash(pair.refreshToken),
                expiresAt: now + SessionTokenPair.refreshLifetime,
                at: now,
                leaseTime: transaction.leaseTime
            )
            try transaction.insert(session)
            return pair
        }
    }

    private enum Rotation: Sendable {
        case renewed(SessionTokenPair, isLateAnswer: Bool)
        case repeated(SealedSecret, age: Duration)
        case reused
        case refused
    }

    /// Exchanges a refresh token for new tokens, or for the family's current ones. The signature is checked before the
    /// family is read, so that a caller who only knows a family's id cannot end it.
    func rotate(_ presented: String) async throws -> SessionTokenPair {
        guard let claims = dependencies.tokens.refreshClaims(of: presented) else {
            throw AppError.invalidRefreshToken
        }
        let now = dependencies.time.now
        if let pair = try await rotateWithoutWriting(claims, at: now) { return pair }
        try dependencies.vault.checkMaySeal()
        switch try await renew(claims, at: now) {
        case .renewed(let pair, let isLateAnswer):
            if isLateAnswer {
                dependencies.log.diagnostics.notice(
                    "a refresh token was presented that a later response had replaced: its own response was late, or the token was copied",
                    claims.logFields
                )
            }
            return pair
        case .repeated(let sealed, let age):
            return try dependencies.vault.openPair(sealed, of: claims.sessionID, age: age)
        case .reused:
            dependencies.log.diagnostics.notice(
                "a spent refresh token was presented after its successor was used: the session has ended for all its devices",
                claims.logFields
            )
            throw AppError.invalidRefreshToken
        case .refused:
            throw AppError.invalidRefreshToken
        }
    }

    private func renew(_ claims: RefreshClaims, at now: Timestamp) async throws -> Rotation {
        try await dependencies.store.transact { transaction in
            let stored = try transaction.session(claims.sessionID, ofTokenFor: claims.userID)
            guard let user = try transaction.user(stored?.userID ?? claims.userID), user.mayHaveSessions else {
                return .refused
            }
            guard var session = try stored ?? firstSession(of: claims, in: transaction, at: now) else {
                return .refused
            }
            let pair = try tokenPair(for: user, session: session.id, at: now)
            let outcome = session.rotate(
                presented: claims.hash,
                to: SessionTokenPair.hash(pair.refreshToken),
                successor: try dependencies.vault.seal(pair, for: session.id),
                expiresAt: now + SessionTokenPair.refreshLifetime,
                at: now,
                leaseTime: transaction.leaseTime,
                grace: dependencies.sessionGrace
            )
            switch outcome {
            case .rotated(let isLateAnswer):
                if stored == nil { try transaction.insert(session) } else { try transaction.update(session) }
                return .renewed(pair, isLateAnswer: isLateAnswer)
            case .repeated(let sealed, let isRecorded):
                if isRecorded { try transaction.update(session) }
                return .repeated(sealed, age: session.family.age(at: transaction.leaseTime))
            case .reused where !claims.isTimely:
                // The token might come from an old backup of the phone. It is refused anyway, so it is not a risk.
                return .refused
            case .reused:
                try transaction.endSession(session.id, ofUser: session.userID)
                try transaction.notify(.sessionReused(session.id), ofUser: session.userID, at: now)
                return .reused
            case .expired:
                // The clean-up deletes it, by a clock that does not follow a step forward.
                return .refused
            }
        }
    }

    /// Handles a request that does not need a write, so that it never waits for the store's writer. Most repetitions,
    /// and tokens of ended families, do not need one. Returns `nil` for a token that does.
    private func rotateWithoutWriting(_ claims: RefreshClaims, at now: Timestamp) async throws -> SessionTokenPair? {
        guard let session = try await dependencies.store.session(claims.sessionID, ofTokenFor: claims.userID) else {
            try await checkFirstUse(of: claims, at: now)
            return nil
        }
        // The session's user: an import might have joined the user that the token names with another one. If it has done
        // so since the session was read, the transaction finds both.
        guard let user = try await dependencies.store.user(session.userID) else { return nil }
        guard user.mayHaveSessions, session.isLive(at: now) else { throw AppError.invalidRefreshToken }
        let leaseTime = try await dependencies.store.leaseTime()
        switch session.decide(presented: claims.hash, leaseTime: leaseTime, grace: dependencies.sessionGrace) {
        case .repeatCurrent(mustRecord: false):
            guard let sealed = session.successor else { return nil }
            return try dependencies.vault.openPair(sealed, of: session.id, age: session.family.age(at: leaseTime))
        case .reuse, .renew, .repeatCurrent(mustRecord: true):
            return nil
        }
    }

    /// Throws unless a token without a stored session can begin one.
    private func checkFirstUse(of claims: RefreshClaims, at now: Timestamp) async throws {
        guard mayBegin(claims, at: now) else { throw AppError.invalidRefreshToken }
        guard let user = try await dependencies.store.user(claims.userID) else { throw AppError.notMovedYet }
        guard user.mayHaveSessions else { throw AppError.invalidRefreshToken }
    }

    /// Ends the family that an access token or a refresh token names.
    ///
    /// A token of another program does not name one. A family that has ended already is not an error: the response to
    /// the first request might have been lost. That case does not need a write, and only the bearer of a signed token
    /// gets this far.
    func end(by token: String) async throws {
        if let claims = dependencies.tokens.refreshClaims(of: token) {
            if mayBegin(claims, at: dependencies.time.now) { return try await end(former: claims) }
            return try await end(claims.sessionID, ofUser: claims.userID)
        }
        let claims = try await dependencies.tokens.claims(of: token)
        guard let id = claims.sessionID else {
            _ = try await dependencies.tokens.caller(with: claims)
            return
        }
        try await end(id, ofUser: claims.userID)
    }

    private func end(_ id: SessionID, ofUser userID: String) async throws {
        guard try await dependencies.store.session(id, ofTokenFor: userID) != nil else { return }
        try await dependencies.store.transact { transaction in
            // An import might have joined the user with another one since.
            guard let session = try transaction.session(id, ofTokenFor: userID) else { return }
            try transaction.endSession(id, ofUser: session.userID)
        }
    }

    /// Ends the family of a former refresh token. One that has not begun then never begins.
    private func end(former claims: RefreshClaims) async throws {
        let now = dependencies.time.now
        try await dependencies.store.transact { transaction in
            _ = try claims.recordFormer(in: transaction, at: now)
            let session = try transaction.session(claims.sessionID, ofTokenFor: claims.userID)
            if let session { try transaction.endSession(session.id, ofUser: session.userID) }
        }
    }

    private func mayBegin(_ claims: RefreshClaims, at now: Timestamp) -> Bool {
        claims.mayBegin(at: now, until: dependencies.acceptFormerTokensUntil)
    }

    /// Returns the family that a former refresh token begins at its first use, or `nil` if it cannot begin one.
    private func firstSession(
        of claims: RefreshClaims,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Session? {
        guard mayBegin(claims, at: now), try claims.recordFormer(in: transaction, at: now) else { return nil }
        return Session.start(
            id: claims.sessionID,
            userID: claims.userID,
            tokenHash: claims.hash,
            expiresAt: now + SessionTokenPair.refreshLifetime,
            at: now,
            leaseTime: transaction.leaseTime
        )
    }
}

extension User {
    fileprivate var mayHaveSessions: Bool { isActive && !isDeleted }
}

extension TokenVault {
    /// Seals both tokens together, so that every caller within the grace gets the same ones.
    fileprivate func seal(_ pair: SessionTokenPair, for id: SessionID) throws(CryptoError) -> SealedSecret {
        try seal(sessionToken: Secret(pair.accessToken.reveal() + " " + pair.refreshToken.reveal()), for: id)
    }

    fileprivate func openPair(_ sealed: SealedSecret, of id: SessionID, age: Duration) throws -> SessionTokenPair {
        let tokens = try openSuccessor(sealed, of: id).reveal().split(separator: " ")
        guard tokens.count == 2 else {
            throw StoreError(damagedRow: "The successor of session \(id)")
        }
        return SessionTokenPair(
            accessToken: Secret(String(tokens[0])),
            refreshToken: Secret(String(tokens[1])),
            accessLifetime: max(.zero, SessionTokenPair.fullAccessLifetime - age)
        )
    }
}
