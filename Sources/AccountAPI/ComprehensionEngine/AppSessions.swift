internal import Clocks
internal import Observability
internal import Secrets
internal import Store

/// The sessions of apps that signed in with Google: begun, rotated and ended, each in one transaction.
struct AppSessions: Sendable {
    let services: AccountServices

    private var tokens: SessionTokens { SessionTokens(signer: services.signer, random: services.random) }

    /// Signs the owner of a Google account in; who is not known yet becomes a user.
    func begin(as identity: GoogleIdentity) async throws -> TokenPair {
        let now = services.time.now
        let id = SessionID.random(from: services.random)
        let newUserID = UserIdentifier.random(from: services.random)
        let (tokens, linking) = (tokens, services.emailLinking)
        return try await services.store.transact { transaction in
            let known = SignInRules.user(
                for: identity,
                withAccount: try transaction.user(withGoogleUserID: identity.googleUserID),
                withEmail: try transaction.users(withEmail: identity.email),
                linking: linking
            )
            var user = known ?? User(id: newUserID, createdAt: now)
            guard user.isActive else { throw AuthenticationRefusal.inactive }
            user.signIn(as: identity.owner, picture: identity.picture, at: now)
            if known == nil { try transaction.insert(user) } else { try transaction.update(user) }
            let refreshToken = tokens.refreshToken(forUser: user.id, session: id, at: now)
            let session = Session.start(
                id: id,
                userID: user.id,
                tokenHash: SessionTokens.hash(refreshToken),
                expiresAt: now + SessionTokens.refreshLifetime,
                at: now
            )
            try transaction.insert(session)
            return TokenPair(
                accessToken: tokens.accessToken(for: user, session: id, at: now),
                refreshToken: refreshToken
            )
        }
    }

    private enum Rotation: Sendable {
        case tokens(User, RotationOutcome)
        case refused
    }

    /// Puts new tokens in the place of a refresh token.
    ///
    /// The signature is checked before the family is looked at, so that a stranger who knows a family's name cannot end it.
    func rotate(_ presented: String) async throws -> TokenPair {
        let claims = try claims(ofRefreshToken: presented)
        let now = services.time.now
        let hash = SessionTokens.hash(Secret(presented))
        if let answer = try await answerWithoutWriting(claims, presenting: hash, at: now) { return answer }
        let successor = tokens.refreshToken(forUser: claims.userID, session: claims.sessionID, at: now)
        try services.vault.checkMaySeal()
        let sealed = try services.vault.seal(sessionToken: successor, for: claims.sessionID)
        let rotation = try await services.store.transact { transaction -> Rotation in
            guard var session = try transaction.session(claims.sessionID), session.userID == claims.userID,
                let user = try transaction.user(claims.userID), user.isActive, !user.isDeleted
            else { return .refused }
            let outcome = session.rotate(
                presented: hash,
                to: SessionTokens.hash(successor),
                successor: sealed,
                expiresAt: now + SessionTokens.refreshLifetime,
                at: now
            )
            switch outcome {
            case .rotated: try transaction.update(session)
            case .repeated: break
            case .reused, .expired: try transaction.endSession(session.id)
            }
            return .tokens(user, outcome)
        }
        switch rotation {
        case .tokens(let user, .rotated):
            return pair(for: user, claims, refreshToken: successor, at: now)
        case .tokens(let user, .repeated(let sealed)):
            let successor = try services.vault.openSuccessor(sealed, of: claims.sessionID)
            return pair(for: user, claims, refreshToken: successor, at: now)
        case .tokens(_, .reused):
            services.diagnostics.notice("a used refresh token came again: its session was ended")
            throw ComprehensionError.invalidRefreshToken
        case .tokens(_, .expired), .refused:
            throw ComprehensionError.invalidRefreshToken
        }
    }

    /// Answers the requests that take no write, so that they never wait for the store's writer.
    ///
    /// These are the repetition of a successor and the refusal of a token whose family is over. `nil` for a token that rotates
    /// or ends its family.
    private func answerWithoutWriting(
        _ claims: RefreshClaims,
        presenting hash: [UInt8],
        at now: Timestamp
    ) async throws -> TokenPair? {
        guard let session = try await services.store.session(claims.sessionID), session.userID == claims.userID,
            session.isLive(at: now), let user = try await services.store.user(claims.userID), user.isActive,
            !user.isDeleted
        else { throw ComprehensionError.invalidRefreshToken }
        guard let sealed = session.successor(repeatedFor: hash, at: now) else { return nil }
        let successor = try services.vault.openSuccessor(sealed, of: claims.sessionID)
        return pair(for: user, claims, refreshToken: successor, at: now)
    }

    private func pair(
        for user: User,
        _ claims: RefreshClaims,
        refreshToken: Secret,
        at now: Timestamp
    ) -> TokenPair {
        TokenPair(
            accessToken: tokens.accessToken(for: user, session: claims.sessionID, at: now),
            refreshToken: refreshToken
        )
    }

    /// Ends the family that an access token or a refresh token names; a token of a backend's own names none.
    func end(by token: String) async throws {
        let presented = try services.gatekeeper.claims(of: token)
        if let claims = RefreshClaims(presented) {
            guard let session = try await services.store.session(claims.sessionID), session.userID == claims.userID
            else {
                throw AuthenticationRefusal.invalid
            }
            return try await end(claims.sessionID)
        }
        let caller = try await services.gatekeeper.caller(claiming: presented)
        if let id = caller.claims.sessionID { try await end(id) }
    }

    private func end(_ id: SessionID) async throws {
        try await services.store.transact { try $0.endSession(id) }
    }

    private func claims(ofRefreshToken token: String) throws(ComprehensionError) -> RefreshClaims {
        do throws(AuthenticationRefusal) {
            guard let claims = RefreshClaims(try services.gatekeeper.claims(of: token)) else {
                throw AuthenticationRefusal.invalid
            }
            return claims
        } catch {
            throw .invalidRefreshToken
        }
    }
}

extension UserIdentifier {
    /// A new user's id: a random UUID's text (RFC 9562, section 5.4).
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
