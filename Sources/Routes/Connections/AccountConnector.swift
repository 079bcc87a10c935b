internal import Base
internal import Crypto
internal import GoogleOAuth
internal import Scheduler
internal import Storage

/// Connects a user's Google account: stores the app's tokens by a decision that is valid for the data stored at that
/// instant.
///
///     let connector = AccountConnector(dependencies: …, tokens: tokens, identity: identity, caller: caller)
///     let connected = try await connector.store()
///     connected.relation  // .first
struct AccountConnector: Sendable {
    /// After so many decisions the request fails: each is void if the stored grant changes before the commit.
    private static let maximumAttempts = 16
    /// Longer than any access token's lifetime, so that a refresh is made.
    private static let longerThanAnyLifetime: Duration = .seconds(365 * 86_400)

    /// A grant as it was stored, and the state that it had before.
    struct Connected: Sendable {
        let relation: ConnectionRules.Relation
        let grant: Grant
        let formerState: GrantState?
    }

    /// What was found out before a code was spent. Later nobody asks Google, whose failure would lose the code's tokens.
    struct Preparation: Sendable {
        /// The request's target, or the connection that turned out to have the account.
        let target: ConnectionTarget
        let lookup: ConnectionRules.OwnerLookup
    }

    /// A decision, and what it was made about.
    private struct Basis {
        let resolved: ResolvedConnection
        /// The request's target, or the connection that turned out to have the account.
        let target: ConnectionTarget
        /// The id of the connection if there is none yet.
        let newConnection: ConnectionID
        let decision: ConnectionRules.Decision
        let lookup: ConnectionRules.OwnerLookup

        var stored: Grant? { resolved.stored }
    }

    let dependencies: AppRoutes.Dependencies
    let tokens: IncomingGoogleTokens
    let identity: GoogleIdentity
    let caller: AuthenticatedCaller
    /// The tokens of the app's code, if it has brought one instead of a refresh token.
    var exchanged: ExchangedTokens?

    /// Stores the tokens. Asks Google for unknown owners, unless that was done before.
    func store(preparedBy preparation: Preparation? = nil) async throws -> Connected {
        for _ in 0..<Self.maximumAttempts {
            let basis = try await decide(preparedBy: preparation)
            if let connected = try await store(basis) { return connected }
        }
        throw StoreError(.busy, "the user's grant changed too often while it was being stored")
    }

    // MARK: Deciding

    /// Decides about the tokens without storing them, and asks Google for the owners that only Google knows.
    func prepare() async throws -> Preparation {
        let basis = try await decide(preparedBy: nil)
        // Who was not asked by now will not be asked any more.
        return Preparation(target: basis.target, lookup: basis.lookup == .notAsked ? .unknown : basis.lookup)
    }

    private func decide(preparedBy preparation: Preparation?) async throws -> Basis {
        var lookup = preparation?.lookup ?? .notAsked
        while true {
            let grants = try await dependencies.store.grants(ofUser: caller.userID)
            let target: ConnectionTarget
            if let preparation {
                target = currentTarget(preparation.target, among: grants)
            } else {
                target = try await knownTarget(among: grants)
            }
            let resolved = try resolve(target, among: grants)
            let stored = resolved.stored
            if let decision = ConnectionRules.decide(stored: stored, lookup: lookup, incoming: identity.owner) {
                try checkMaySwitch(decision.relation)
                return Basis(
                    resolved: resolved,
                    target: target,
                    newConnection: resolved.missingID ?? .random(from: dependencies.random),
                    decision: decision,
                    lookup: lookup
                )
            }
            // Only about a stored grant there is nothing to decide yet.
            guard let stored else { throw AppError.internalError }
            lookup = try await lookUpOwner(of: stored)
        }
    }

    /// Returns the connection that has the account although nothing stored says so, or the request's target.
    ///
    /// An import can bring grants of unknown accounts. One more connection of the same account would be revoked with the
    /// first one.
    private func knownTarget(among grants: [Grant]) async throws -> ConnectionTarget {
        guard tokens.target == .new, !grants.contains(where: { $0.isConnection(of: identity.owner) }) else {
            return tokens.target
        }
        for grant in grants where ConnectionRules.needsLookUp(of: grant) {
            guard case .found(let owner) = try await lookUpOwner(of: grant) else { continue }
            if owner.isSameAccount(as: identity.owner) { return .named(grant.connection) }
        }
        return tokens.target
    }

    /// Returns the target that was found before, or `new` if the connection has got another account since.
    private func currentTarget(_ found: ConnectionTarget, among grants: [Grant]) -> ConnectionTarget {
        guard tokens.target == .new, case .named(let id) = found else { return found }
        let hasSameAccount = grants.contains { grant in
            grant.connection == id && !grant.owner.isOtherAccount(than: identity.owner)
        }
        return hasSameAccount ? found : .new
    }

    private func resolve(
        _ target: ConnectionTarget,
        among grants: [Grant]
    ) throws(AppError) -> ResolvedConnection {
        do throws(ConnectionTargetError) {
            return try target.resolve(among: grants, account: identity.owner, limit: dependencies.connectionsPerUser)
        } catch {
            // Also after a code was spent: then it is an end like any other, and not a failure of the store.
            throw AppError(error)
        }
    }

    /// Throws if the connection must stay with its account: the app names it, or wants no switch.
    private func checkMaySwitch(_ relation: ConnectionRules.Relation) throws(AppError) {
        guard tokens.target.keepsAccount, case .switched(let from, let to) = relation else { return }
        if case .default = tokens.target { throw .accountSwitch(from: from, to: to) }
        throw .accountMismatch(expected: from, found: to)
    }

    /// Asks Google for the owner of the stored grant: a refresh, then userinfo. The grant can be gone by then.
    private func lookUpOwner(of stored: Grant) async throws -> ConnectionRules.OwnerLookup {
        let token: VendedToken
        do {
            token = try await dependencies.engine.freshToken(of: stored.id, minimumLife: Self.longerThanAnyLifetime)
        } catch VendingError.refused, VendingError.unreadable {
            return .unknown
        } catch VendingError.unknownGrant {
            return .notAsked
        }
        do throws(LookupError) {
            let owner = try await dependencies.google.userInfo(accessToken: token.accessToken)
            return .found(Grant.Owner(googleUserID: owner.googleUserID, email: owner.email))
        } catch .refused {
            return .unknown
        } catch .unavailable {
            throw AppError.googleUnreachable
        }
    }

    /// Returns the new refresh token, unless it is known to belong to another account. Otherwise an app that sends a
    /// token from before a switch would give one account access to the other's mail.
    private func acceptedRefreshToken(_ basis: Basis) async throws -> Secret? {
        if let exchanged { return exchanged.refreshToken }
        guard let token = tokens.refreshToken else { return nil }
        if isOfFormerAccount(token, by: basis) { return nil }
        let mark = TokenMarks(of: token).digest
        let holders = try await dependencies.store.transact { try $0.grants(withRefreshTokenMark: mark) }
        if ConnectionRules.areOfOtherAccount(holders, than: identity.owner) { return nil }
        return token
    }

    /// `true` if the app brings again the stored token of the account that its user switches away from.
    private func isOfFormerAccount(_ token: Secret, by basis: Basis) -> Bool {
        guard let stored = basis.stored, basis.decision.relation.isSwitch else { return false }
        if stored.hasTokenOfAnotherAccount { return false }
        return !dependencies.vault.isOther(refreshToken: token, ofClient: stored.clientID, than: stored)
    }

    // MARK: Storing

    /// Stores a new grant, or a reconnected one. It returns `nil` if the stored grant has changed since the decision.
    private func store(_ basis: Basis) async throws -> Connected? {
        let refreshToken = try await acceptedRefreshToken(basis)
        let now = dependencies.time.now
        let new = NewConnection(
            id: basis.stored?.id ?? GrantID.random(from: dependencies.random),
            userID: caller.userID,
            connection: basis.newConnection
        )
        let incoming = try incomingTokens(for: new.id, refreshToken: refreshToken, at: now)
        let reconnection = reconnection(basis, incoming: incoming, refreshToken: refreshToken)
        guard let change = try await commit(incoming, as: new, on: basis, by: reconnection, at: now) else { return nil }
        for event in change.events { dependencies.log.state(event) }
        await dependencies.engine.storeChanged()
        return Connected(
            relation: basis.decision.relation,
            grant: change.grant,
            formerState: basis.stored?.state
        )
    }

    private func reconnection(_ basis: Basis, incoming: IncomingTokens, refreshToken: Secret?) -> Reconnection? {
        guard let stored = basis.stored else { return nil }
        return Reconnection(
            stored: stored,
            incoming: incoming,
            replacesRefreshToken: dependencies.vault.isOther(
                refreshToken: refreshToken,
                ofClient: exchanged?.clientID ?? identity.clientID,
                boundTo: incoming.refreshToken?.bindingKeyID,
                than: stored
            ),
            discardsStored: !basis.decision.keepsStored
        )
    }

    private func incomingTokens(
        for id: GrantID,
        refreshToken: Secret?,
        at now: Timestamp
    ) throws(CryptoError) -> IncomingTokens {
        let vault = dependencies.vault
        if let exchanged { return try exchanged.sealed(for: id, with: vault) }
        var incoming = IncomingTokens(
            clientID: identity.clientID,
            owner: identity.owner,
            scope: tokens.grantedScope(identity)
        )
        incoming.accessToken = Grant.AccessToken(
            sealed: try vault.seal(accessToken: tokens.accessToken, for: id),
            obtainedAt: now,
            expiresAt: tokens.accessTokenEnd(identity, at: now)
        )
        if let refreshToken {
            incoming.refreshToken = try vault.seal(
                refreshToken: refreshToken,
                for: id,
                expiresAt: tokens.refreshTokenLifetime.map { now + $0 },
                consentedAt: now
            )
        }
        return incoming
    }

    private func commit(
        _ incoming: IncomingTokens,
        as new: NewConnection,
        on basis: Basis,
        by reconnection: Reconnection?,
        at now: Timestamp
    ) async throws -> GrantChange? {
        try dependencies.vault.checkMaySeal()
        let (caller, identity, exchanged) = (caller, identity, exchanged)
        // Before an exchange the app's token was checked already.
        let uncheckedToken = exchanged == nil ? tokens.accessToken : nil
        return try await dependencies.store.transact { transaction in
            if let uncheckedToken { try transaction.refuse(uncheckedToken, issuedTo: identity.owner, at: now) }
            let resolved = try resolve(basis.target, among: try transaction.grants(ofUser: caller.userID))
            guard Self.isExpected(resolved, by: reconnection, on: basis) else { return nil }
            let stored = resolved.stored
            if let newer = try exchanged?.newerConnection(than: stored, in: transaction) {
                return GrantChange(grant: newer, events: [])
            }
            if let exchanged, let stored,
                try Self.isSuperseded(exchanged, by: stored, bringing: incoming, in: transaction)
            {
                // The account is connected, which is what this device asked for.
                guard stored.state.isConnected, !stored.owner.isOtherAccount(than: exchanged.owner) else {
                    throw AppError.refusedCode
                }
                return GrantChange(grant: stored, events: [])
            }
            _ = try caller.storeUser(in: transaction, at: now)
            return try transaction.connect(
                incoming,
                as: new,
                changing: stored,
                by: reconnection,
                at: now
            )
        }
    }

    /// `true` if the decision still holds for what is stored.
    private static func isExpected(
        _ resolved: ResolvedConnection,
        by reconnection: Reconnection?,
        on basis: Basis
    ) -> Bool {
        switch (reconnection, resolved) {
        case (nil, .missing(let id)): id == basis.resolved.missingID
        case (let reconnection?, .stored(let stored)): reconnection.isBased(on: stored)
        case (nil, .stored), (_?, .missing): false
        }
    }

    /// `true` if another device of the user connected or ended the grant after Google's response to this code.
    private static func isSuperseded(
        _ exchanged: ExchangedTokens,
        by stored: Grant,
        bringing incoming: IncomingTokens,
        in transaction: any StoreTransaction
    ) throws -> Bool {
        guard exchanged.refreshToken != nil else { return false }
        // The store can have failed for long. A try whose own commit was not confirmed finds its token there.
        if stored.holds(incoming.refreshToken) { return false }
        return try exchanged.isOutdated(by: stored, in: transaction)
    }
}
