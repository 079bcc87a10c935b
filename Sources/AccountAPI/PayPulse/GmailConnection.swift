internal import Clocks
internal import GoogleOAuth
internal import RefreshEngine
internal import Secrets
internal import Store

/// Stores the tokens that an app brings, with a decision that is valid for the data stored at that instant.
struct GmailConnection: Sendable {
    /// The number of times the stored grant may change under the decision before the app is asked to try again.
    private static let mostRounds = 16
    /// Longer than any access token lives, so that a refresh is made.
    private static let moreThanAnyLife: Duration = .seconds(365 * 86_400)
    /// The lifetime of Google's access tokens, for tokens of unknown lifetime.
    private static let usualLifetime: Duration = .seconds(3600)

    let services: RouteDependencies
    let tokens: GmailTokens
    let identity: GoogleIdentity
    let caller: AuthenticatedCaller

    struct Outcome: Sendable {
        var relation: ConnectionRules.Relation
        var grant: Grant
    }

    private enum Attempt: Sendable {
        case stored(Grant, [GrantEvent])
        /// The stored grant differs from the expected one: decide again.
        case changed
    }

    private enum Plan: Sendable {
        case new(Grant, [GrantEvent])
        case replacement(Reconnection)
    }

    func store() async throws -> Outcome {
        for _ in 0..<Self.mostRounds {
            let (stored, verdict) = try await decide()
            let refreshToken = try await ownRefreshToken(verdict, over: stored)
            let now = services.time.now
            guard
                case .stored(let grant, let events) = try await commit(
                    try plan(verdict, over: stored, bringing: refreshToken, at: now),
                    at: now
                )
            else { continue }
            for event in events { services.log.state(event) }
            await services.engine.storeChanged()
            return Outcome(relation: verdict.relation, grant: grant)
        }
        throw StoreError(.busy, "the user's grant changed too often while it was being stored")
    }

    // MARK: Deciding

    private func decide() async throws -> (stored: Grant?, verdict: ConnectionRules.Verdict) {
        var learnt = ConnectionRules.LearnedAccount.notAsked
        while true {
            let stored = try await services.store.grant(ofUser: caller.userID)
            switch ConnectionRules.step(stored: stored, learnt: learnt, brought: identity.owner) {
            case .decided(let verdict): return (stored, verdict)
            case .learnOwner: learnt = try await learnOwner()
            }
        }
    }

    /// Returns the owner of the stored grant, from a refresh and userinfo.
    private func learnOwner() async throws -> ConnectionRules.LearnedAccount {
        let token: VendedToken
        do {
            token = try await services.engine.freshToken(of: caller.userID, minimumLife: Self.moreThanAnyLife)
        } catch VendingFailure.refused, VendingFailure.unreadable {
            return .unknowable
        } catch VendingFailure.unknownUser {
            return .notAsked
        }
        do throws(AccountLookupFailure) {
            let owner = try await services.google.userInfo(accessToken: token.accessToken)
            return .owner(Grant.Owner(googleUserID: owner.googleUserID, email: owner.email))
        } catch .refused {
            return .unknowable
        } catch .unavailable(let code) {
            throw IdentityFailure.unavailable(code: code)
        }
    }

    /// Returns the new refresh token, unless it is known to belong to another account.
    ///
    /// Otherwise an app that sends a token from before a switch would give one account the other's mail.
    private func ownRefreshToken(_ verdict: ConnectionRules.Verdict, over stored: Grant?) async throws -> Secret? {
        guard let token = tokens.refreshToken else { return nil }
        if let stored, verdict.relation.isSwitch, !stored.hasForeignToken,
            !services.vault.isOther(refreshToken: token, ofClient: stored.clientID, than: stored)
        {
            return nil
        }
        let mark = TokenMarks(of: token).digest
        let holders = try await services.store.transact { try $0.grants(withRefreshTokenMark: mark) }
        return ConnectionRules.belongToOthers(holders, than: identity.owner) ? nil : token
    }

    private func plan(
        _ verdict: ConnectionRules.Verdict,
        over stored: Grant?,
        bringing refreshToken: Secret?,
        at now: Timestamp
    ) throws(SealError) -> Plan {
        guard let stored else {
            let id = GrantID.random(from: services.random)
            let incoming = try incoming(for: id, bringing: refreshToken, at: now)
            let dueAt = DueTimes.due(
                accessToken: incoming.accessToken,
                hasRefreshToken: incoming.refreshToken != nil,
                phase: id.phase,
                at: now
            )
            let (grant, events) = Grant.connected(
                id: id,
                userID: caller.userID,
                incoming: incoming,
                dueAt: dueAt,
                at: now
            )
            return .new(grant, events)
        }
        return .replacement(
            Reconnection(
                stored: stored,
                incoming: try incoming(for: stored.id, bringing: refreshToken, at: now),
                replacesRefreshToken: services.vault.isOther(
                    refreshToken: refreshToken,
                    ofClient: identity.clientID,
                    than: stored
                ),
                switchesAccount: !verdict.keepsStored
            )
        )
    }

    /// Returns the sealed tokens for a grant; Google's scope and lifetime take precedence over the app's.
    private func incoming(
        for id: GrantID,
        bringing refreshToken: Secret?,
        at now: Timestamp
    ) throws(SealError) -> IncomingTokens {
        let vault = services.vault
        var incoming = IncomingTokens(clientID: identity.clientID, owner: identity.owner, scope: scope)
        incoming.accessToken = Grant.AccessToken(
            sealed: try vault.seal(accessToken: tokens.accessToken, for: id),
            obtainedAt: now,
            expiresAt: now + (identity.lifetime ?? tokens.lifetime ?? Self.usualLifetime)
        )
        if let token = refreshToken {
            incoming.refreshToken = try vault.seal(
                refreshToken: token,
                for: id,
                expiresAt: tokens.refreshTokenLifetime.map { now + $0 }
            )
        }
        return incoming
    }

    private var scope: String? { identity.scope ?? tokens.scope }

    // MARK: Storing

    private func commit(_ plan: Plan, at now: Timestamp) async throws -> Attempt {
        try services.vault.checkMaySeal()
        let (caller, identity, token) = (caller, identity, tokens.accessToken)
        return try await services.store.transact { transaction in
            try ProofOfIdentity.check(token, of: identity, in: transaction, at: now)
            let arrival: (grant: Grant, events: [GrantEvent], isNew: Bool)
            switch (plan, try transaction.grant(ofUser: caller.userID)) {
            case (.new(let grant, let events), nil):
                arrival = (grant, events, true)
            case (.replacement(let replacement), var grant?) where replacement.isBased(on: grant):
                let events = replacement.apply(to: &grant, at: now) { DueTimes.due($0, at: now) }
                arrival = (grant, events, false)
            default:
                return .changed
            }
            var user = try caller.settle(in: transaction, at: now)
            if user.name?.isEmpty ?? true, let name = identity.name {
                user.name = name
                try transaction.update(user)
            }
            if arrival.isNew { try transaction.insert(arrival.grant) } else { try transaction.update(arrival.grant) }
            for event in arrival.events { try transaction.record(event) }
            return .stored(arrival.grant, arrival.events)
        }
    }
}
