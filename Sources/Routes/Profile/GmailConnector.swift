internal import Base
internal import Crypto
internal import GoogleOAuth
internal import HTTPServer
internal import Scheduler
internal import Storage

/// Connects a user's Gmail: stores the app's tokens by a decision that is valid for the data stored at that instant.
struct GmailConnector: Sendable {
    /// The number of decisions before the request fails: each is void if the stored grant changes before the commit.
    private static let maximumAttempts = 16
    /// Longer than any access token's lifetime, so that a refresh is made.
    private static let longerThanAnyLifetime: Duration = .seconds(365 * 86_400)
    /// The lifetime of Google's access tokens, for tokens of unknown lifetime.
    static let defaultLifetime: Duration = .seconds(3600)

    let dependencies: RouteDependencies
    let tokens: GmailTokens
    let identity: GoogleIdentity
    let caller: AuthenticatedCaller
    /// The tokens of the app's code, if it has brought one instead of a refresh token.
    var exchanged: ExchangedTokens?

    /// Stores the tokens, and returns the grant with the state that it had before.
    ///
    /// `lookedUp` is the owner of the stored grant if it was looked up before. Google is then not asked again.
    func store(
        lookedUp owner: Grant.Owner? = nil
    ) async throws -> (relation: ConnectionRules.Relation, grant: Grant, formerly: GrantState?) {
        for _ in 0..<Self.maximumAttempts {
            let (stored, decision, _) = try await decide(lookedUp: owner)
            let refreshToken = try await acceptedRefreshToken(decision, over: stored)
            let now = dependencies.time.now
            let id = stored?.id ?? GrantID.random(from: dependencies.random)
            let incoming = try incomingTokens(for: id, refreshToken: refreshToken, at: now)
            let reconnection = stored.map { stored in
                Reconnection(
                    stored: stored,
                    incoming: incoming,
                    replacesRefreshToken: dependencies.vault.isOther(
                        refreshToken: refreshToken,
                        ofClient: exchanged?.clientID ?? identity.clientID,
                        than: stored
                    ),
                    switchesAccount: !decision.keepsStored
                )
            }
            guard let change = try await commit(incoming, as: id, by: reconnection, at: now) else { continue }
            for event in change.events { dependencies.log.state(event) }
            await dependencies.engine.storeChanged()
            return (decision.relation, change.grant, stored?.state)
        }
        throw StoreError(.busy, "the user's grant changed too often while it was being stored")
    }

    // MARK: Deciding

    /// Returns the owner of the stored grant if the decision needs it and only Google knows it.
    func lookedUpOwner() async throws -> Grant.Owner? { try await decide(lookedUp: nil).lookedUp }

    private func decide(
        lookedUp: Grant.Owner?
    ) async throws -> (stored: Grant?, decision: ConnectionRules.Decision, lookedUp: Grant.Owner?) {
        var owner = lookedUp
        while true {
            let stored = try await dependencies.store.grant(ofUser: caller.userID)
            if let decision = ConnectionRules.decide(stored: stored, lookedUp: owner, incoming: identity.owner) {
                return (stored, decision, owner)
            }
            owner = try await lookUpOwner()
        }
    }

    /// Returns the owner of the stored grant, from a refresh and userinfo.
    ///
    /// The owner has no name if the grant is dead. The result is `nil` if there is no grant.
    private func lookUpOwner() async throws -> Grant.Owner? {
        let token: VendedToken
        do {
            token = try await dependencies.engine.freshToken(of: caller.userID, minimumLife: Self.longerThanAnyLifetime)
        } catch VendingError.refused, VendingError.unreadable {
            return Grant.Owner()
        } catch VendingError.unknownUser {
            return nil
        }
        do throws(LookupError) {
            let owner = try await dependencies.google.userInfo(accessToken: token.accessToken)
            return Grant.Owner(googleUserID: owner.googleUserID, email: owner.email)
        } catch .refused {
            return Grant.Owner()
        } catch .unavailable {
            throw APIError.googleUnreachable
        }
    }

    /// Returns the new refresh token, unless it is known to belong to another account.
    ///
    /// Otherwise an app that sends a token from before a switch would give one account access to the other's mail.
    private func acceptedRefreshToken(_ decision: ConnectionRules.Decision, over stored: Grant?) async throws -> Secret?
    {
        if let exchanged { return exchanged.refreshToken }
        guard let token = tokens.refreshToken else { return nil }
        if let stored, decision.relation.isSwitch, !stored.hasTokenOfAnotherAccount,
            !dependencies.vault.isOther(refreshToken: token, ofClient: stored.clientID, than: stored)
        {
            return nil
        }
        let mark = TokenMarks(of: token).digest
        let holders = try await dependencies.store.transact { try $0.grants(withRefreshTokenMark: mark) }
        return ConnectionRules.areOfOtherAccount(holders, than: identity.owner) ? nil : token
    }

    /// Returns the sealed tokens for a grant, with Google's scope and lifetime before the app's.
    private func incomingTokens(
        for id: GrantID,
        refreshToken: Secret?,
        at now: Timestamp
    ) throws(CryptoError) -> IncomingTokens {
        let vault = dependencies.vault
        if let exchanged { return try exchanged.sealed(for: id, with: vault) }
        var incoming = IncomingTokens(clientID: identity.clientID, owner: identity.owner, scope: scope)
        incoming.accessToken = Grant.AccessToken(
            sealed: try vault.seal(accessToken: tokens.accessToken, for: id),
            obtainedAt: now,
            expiresAt: now + (identity.lifetime ?? tokens.lifetime ?? Self.defaultLifetime)
        )
        if let token = refreshToken {
            incoming.refreshToken = try vault.seal(
                refreshToken: token,
                for: id,
                expiresAt: tokens.refreshTokenLifetime.map { now + $0 },
                consentedAt: now
            )
        }
        return incoming
    }

    private var scope: String? { identity.scope ?? tokens.scope }

    // MARK: Storing

    /// Stores a new grant, or a reconnected one.
    ///
    /// It returns `nil` if the stored grant is not the expected one any more.
    private func commit(
        _ incoming: IncomingTokens,
        as id: GrantID,
        by reconnection: Reconnection?,
        at now: Timestamp
    ) async throws -> (grant: Grant, events: [GrantEvent])? {
        try dependencies.vault.checkMaySeal()
        let (caller, identity) = (caller, identity)
        // Before an exchange the app's token was checked already.
        let (exchanged, token) = (exchanged, exchanged == nil ? tokens.accessToken : nil)
        return try await dependencies.store.transact { transaction in
            if let token { try transaction.refuse(token, issuedTo: identity.owner, at: now) }
            let stored = try transaction.grant(ofUser: caller.userID)
            switch (reconnection, stored) {
            case (nil, nil): break
            case (let reconnection?, let grant?) where reconnection.isBased(on: grant): break
            default: return nil
            }
            // The store can have failed for long. A try whose own commit was not confirmed finds its token there.
            if let exchanged, exchanged.refreshToken != nil, let stored, !stored.holds(incoming.refreshToken),
                try exchanged.isOutdated(by: stored, in: transaction)
            {
                // Another device of the user was faster. The account is connected, which is what this one asked for.
                guard stored.state.isConnected, !stored.owner.isOtherAccount(than: exchanged.owner) else {
                    throw APIError.refusedCode
                }
                return (stored, [])
            }
            _ = try caller.storeUser(in: transaction, at: now)
            return try transaction.connect(
                incoming,
                as: id,
                ofUser: caller.userID,
                changing: stored,
                by: reconnection,
                at: now
            )
        }
    }
}

/// The tokens that the app posts after its user has consented at Google.
///
/// The optional e-mail address is validated and not used: the token's owner comes from Google.
struct GmailTokens: Sendable {
    var accessToken: Secret
    var refreshToken: Secret?
    /// The code that the worker exchanges for the refresh token, if the app brings one instead of the token.
    var serverAuthCode: Secret?
    /// The remaining lifetime of the refresh token, or `nil` if the app does not know one.
    var refreshTokenLifetime: Duration?
    var lifetime: Duration?
    var scope: String?

    /// Google documents at most 256 bytes, and asks for room for more.
    private static let maximumCode = 2048
    private static let maximumEmail = 255

    init(_ request: ServerRequest) throws(APIError) {
        let body = try RequestBody(request, allowsForm: true)
        let accessToken = try body.required("access_token")
        refreshToken = try body.token("refresh_token")
        serverAuthCode = try body.token("server_auth_code", limit: Self.maximumCode)
        guard refreshToken == nil || serverAuthCode == nil else {
            throw .invalidField("refresh_token", mustBe: "left out beside server_auth_code")
        }
        let refreshTokenLifetime = try body.seconds("refresh_token_expires_in")
        // Zero means that the token does not expire, as in other servers' responses.
        self.refreshTokenLifetime = refreshTokenLifetime == .zero ? nil : refreshTokenLifetime
        lifetime = try body.seconds("expires_in")
        scope = try body.scopes("scope")
        // Not used, and checked as the description says, so that a mistake of the app shows.
        if let email = try body.text("email"), email.unicodeScalars.count > Self.maximumEmail {
            throw .invalidField("email", mustBe: "shorter")
        }
        // A malformed token is refused without asking Google.
        guard Token.isWellFormed(accessToken) else { throw .refusedByGoogle }
        self.accessToken = Secret(accessToken)
    }
}
