internal import Clocks
internal import Observability
internal import Secrets
internal import Store

/// The sessions of apps that signed in with Google: begun, rotated and ended, each in one transaction.
struct AppSessions: Sendable {
    let services: RouteDependencies

    private var tokens: SessionTokens { SessionTokens(signer: services.signer, random: services.random) }

    /// Signs in the owner of a Google account; an unknown owner becomes a user.
    func begin(as identity: GoogleIdentity, provenBy googleToken: Secret) async throws -> SessionTokenPair {
        let now = services.time.now
        let id = SessionID.random(from: services.random)
        let newUserID = UserIdentifier.random(from: services.random)
        let (tokens, linking) = (tokens, services.emailLinking)
        return try await services.store.transact { transaction in
            try ProofOfIdentity.check(googleToken, of: identity, in: transaction, at: now)
            let known = SignInRules.user(
                for: identity,
                withAccount: try transaction.user(withGoogleUserID: identity.googleUserID),
                withEmail: try transaction.users(withEmail: identity.email),
                linking: linking
            )
            if let known { try ProofOfIdentity.check(googleToken, ofUser: known.id, in: transaction) }
            var user = known ?? User(id: newUserID, createdAt: now)
            guard user.isActive else { throw AuthenticationRefusal.inactive }
            user.signIn(as: identity.owner, picture: identity.picture, at: now)
            if known == nil { try transaction.insert(user) } else { try transaction.update(user) }
            let pair = tokens.pair(for: user, session: id, at: now)
            let session = Session.start(
                id: id,
                userID: user.id,
                tokenHash: SessionTokens.hash(pair.refreshToken),
                expiresAt: now + SessionTokens.refreshLifetime,
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

    /// Answers a refresh token with new tokens, or with the family's current ones.
    ///
    /// The signature is checked before the family is read, so that a caller who only knows a family's id cannot end it.
    func rotate(_ presented: String) async throws -> SessionTokenPair {
        guard let claims = services.gatekeeper.refreshClaims(of: presented) else {
            throw ComprehensionError.invalidRefreshToken
        }
        let now = services.time.now
        if let answer = try await answerWithoutWriting(claims, at: now) { return answer }
        try services.vault.checkMaySeal()
        switch try await renew(claims, at: now) {
        case .renewed(let pair, let isLateAnswer):
            if isLateAnswer {
                services.diagnostics.notice(
                    "a refresh token came that a later answer had replaced: its answer was late, or there is a copy of it",
                    claims.audit
                )
            }
            return pair
        case .repeated(let sealed, let age):
            return try services.vault.openPair(sealed, of: claims.sessionID, age: age)
        case .reused:
            services.diagnostics.notice(
                "a spent refresh token came again after its successor was used: its session has ended for all holders",
                claims.audit
            )
            throw ComprehensionError.invalidRefreshToken
        case .refused:
            throw ComprehensionError.invalidRefreshToken
        }
    }

    private func renew(_ claims: RefreshClaims, at now: Timestamp) async throws -> Rotation {
        let (tokens, grace) = (tokens, services.sessionRules.grace)
        return try await services.store.transact { [services] transaction -> Rotation in
            guard let user = try transaction.user(claims.userID), user.isActive, !user.isDeleted else {
                return .refused
            }
            let stored = try transaction.session(claims.sessionID)
            guard
                var session = try stored
                    ?? firstSession(of: claims, rules: services.sessionRules, in: transaction, at: now),
                session.userID == claims.userID
            else { return .refused }
            let pair = tokens.pair(for: user, session: session.id, at: now)
            let outcome = session.rotate(
                presented: claims.hash,
                to: SessionTokens.hash(pair.refreshToken),
                successor: try services.vault.seal(pair, for: session.id),
                expiresAt: now + SessionTokens.refreshLifetime,
                at: now,
                leaseTime: transaction.leaseTime,
                grace: grace
            )
            switch outcome {
            case .rotated(let isLateAnswer):
                if stored == nil { try transaction.insert(session) } else { try transaction.update(session) }
                return .renewed(pair, isLateAnswer: isLateAnswer)
            case .repeated(let sealed, let isRecorded):
                if isRecorded { try transaction.update(session) }
                return .repeated(sealed, age: session.family.age(at: transaction.leaseTime))
            case .reused where !claims.isTimely:
                // For example from an old backup of the phone: a token that is refused anyway is not a risk.
                return .refused
            case .reused:
                try transaction.endSession(session.id)
                try transaction.notify(.sessionReused(session.id), ofUser: session.userID, at: now)
                return .reused
            case .expired:
                try transaction.endSession(session.id)
                return .refused
            }
        }
    }

    /// Answers the requests that do not need a write, so that they never wait for the store's writer.
    ///
    /// These are most repetitions of the current tokens, and tokens of ended families. Returns `nil` for a token that
    /// needs a write.
    private func answerWithoutWriting(_ claims: RefreshClaims, at now: Timestamp) async throws -> SessionTokenPair? {
        guard let user = try await services.store.user(claims.userID), user.isActive, !user.isDeleted else {
            throw ComprehensionError.invalidRefreshToken
        }
        guard let session = try await services.store.session(claims.sessionID) else {
            guard claims.mayBegin(at: now, services.sessionRules) else { throw ComprehensionError.invalidRefreshToken }
            return nil
        }
        guard session.userID == claims.userID, session.isLive(at: now) else {
            throw ComprehensionError.invalidRefreshToken
        }
        let leaseTime = try await services.store.leaseTime()
        let decision = session.decide(
            presented: claims.hash,
            leaseTime: leaseTime,
            grace: services.sessionRules.grace
        )
        guard case .repeatCurrent(mustRecord: false) = decision, let sealed = session.successor else { return nil }
        return try services.vault.openPair(sealed, of: session.id, age: session.family.age(at: leaseTime))
    }

    /// Ends the family that an access token or a refresh token names; a token that was not made here does not name one.
    ///
    /// A family that has ended already is not an error: the answer to the first request may have been lost. That case
    /// does not need a write, and only the bearer of a signed token gets this far.
    func end(by token: String) async throws {
        if let claims = services.gatekeeper.refreshClaims(of: token) {
            if claims.mayBegin(at: services.time.now, services.sessionRules) { return try await end(former: claims) }
            return try await end(claims.sessionID, ofUser: claims.userID)
        }
        let presented = try services.gatekeeper.claims(of: token)
        let claims = try AccessClaims(presented)
        guard let id = claims.sessionID else {
            _ = try await services.gatekeeper.caller(claiming: presented)
            return
        }
        try await end(id, ofUser: claims.userID)
    }

    private func end(_ id: SessionID, ofUser userID: String) async throws {
        guard let session = try await services.store.session(id) else { return }
        guard session.userID == userID else { throw AuthenticationRefusal.invalid }
        try await services.store.transact { try $0.endSession(id) }
    }

    /// Ends the family of a former refresh token; a family that has not begun then never begins.
    private func end(former claims: RefreshClaims) async throws {
        let now = services.time.now
        try await services.store.transact { transaction in
            _ = try claims.rememberFormer(in: transaction, at: now)
            try transaction.endSession(claims.sessionID)
        }
    }
}

/// Returns the family that a former refresh token begins at its first use; `nil` if it may not begin one.
private func firstSession(
    of claims: RefreshClaims,
    rules: SessionRules,
    in transaction: any StoreTransaction,
    at now: Timestamp
) throws -> Session? {
    guard claims.mayBegin(at: now, rules), try claims.rememberFormer(in: transaction, at: now) else { return nil }
    return Session.start(
        id: claims.sessionID,
        userID: claims.userID,
        tokenHash: claims.hash,
        expiresAt: now + SessionTokens.refreshLifetime,
        at: now,
        leaseTime: transaction.leaseTime
    )
}

extension TokenVault {
    /// Seals both tokens together, so that every caller within the grace gets the same ones.
    fileprivate func seal(_ pair: SessionTokenPair, for id: SessionID) throws(SealError) -> SealedSecret {
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
            accessLifetime: max(.zero, SessionTokens.accessLifetime - age)
        )
    }
}

extension UserIdentifier {
    /// Returns a new user's id: the text of a random UUID (RFC 9562, section 5.4).
    static func random(from source: any RandomSource) -> String {
        let high = source.nextBits() & ~0xf000 | 0x4000
        let low = source.nextBits() & ~(0b11 << 62) | (0b10 << 62)
        let digits = [high, low].map { word in
            let text = String(word, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
        var groups: [Substring] = []
        var rest = digits[...]
        for length in [8, 4, 4, 4, 12] {
            groups.append(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        return groups.joined(separator: "-")
    }
}
