internal import Base
internal import Crypto
internal import GoogleOAuth
internal import Scheduler
internal import Storage
internal import Telemetry

/// Connects a user's Google account by a code of the app: from the accepted caller to the stored grant.
///
/// The code can be used once, so all that could keep its tokens from being stored is checked before it is sent.
struct CodeConnector: Sendable {
    /// The note that is written before each exchange.
    private static let note = "last_code_exchange"
    private static let firstPause: Duration = .milliseconds(500)
    private static let maximumPause: Duration = .seconds(10)

    let dependencies: AppRoutes.Dependencies
    let configured: ConfiguredCodeExchanges
    let code: Secret
    let tokens: IncomingGoogleTokens
    /// The owner of the app's access token, whom the code must belong to.
    let identity: GoogleIdentity
    let caller: AuthenticatedCaller
    /// The id of the request in the log.
    let requestID: String

    private var exchanges: CodeExchanges { configured.exchanges }
    private var client: OAuthClientCredentials { configured.client }
    private var key: CodeKey { CodeKey(of: code) }

    /// Connects the grant, or returns what the first request with the same code led to.
    func connect() async throws -> CodeExchanges.ConnectedGrant {
        try await exchanges.connectedGrant(
            by: key,
            ofUser: caller.userID,
            account: identity.googleUserID,
            target: tokens.target
        ) {
            await exchange()
        }
    }

    /// Spends the code and stores the grant.
    private func exchange() async -> CodeExchanges.Outcome {
        let preparation: AccountConnector.Preparation
        let bindingKey: BindingKey?
        do {
            preparation = try await prepare()
            bindingKey = try await prepareBinding()
        } catch {
            return .failed(error)
        }
        switch await exchanges.endpoint.exchange(code, client: client, boundTo: bindingKey) {
        case .granted(let response):
            recordAcceptedCode()
            var exchanged = unchecked(
                response.rotated,
                boundTo: bindingKey,
                lifetime: response.refreshTokenLifetime
            )
            exchanged.refreshTokenTimeout = response.refreshTokenTimeout
            // Held before the account is known: a worker that stops now must not lose the refresh token.
            exchanges.hold(exchanged, for: key)
            return await check(response, bringing: exchanged, preparedBy: preparation)
        case .incomplete(let refreshToken):
            recordAcceptedCode()
            return await store(unchecked(refreshToken, boundTo: bindingKey), preparedBy: preparation)
        case .refused(let reason):
            log("a server auth code is refused", because: reason)
            return .refused(.refusedCode)
        case .foreign(let reason):
            if exchanges.countForeign(of: caller.userID) {
                raiseAlarm("codes of another client: the app's GIDServerClientID must be \(client.id)", because: reason)
            }
            log("a server auth code is refused", because: reason)
            return .refused(.refusedCode)
        case .clientRefused(let reason):
            raiseAlarm("the server client \(client.id): check --server-client-id and its secret", because: reason)
            log("a server auth code could not be exchanged", because: reason)
            return .failed(AppError.googleUnreachable)
        case .proofRefused(let refusal, let reason):
            raiseAlarm("the proofs for codes: \(refusal.advice)", because: reason)
            log("a server auth code could not be exchanged", because: reason)
            return .failed(AppError.googleUnreachable)
        case .unavailable(let reason):
            log("a server auth code could not be exchanged", because: reason)
            return .failed(AppError.googleUnreachable)
        }
    }

    // MARK: Before the code is spent

    /// Checks all that could keep the tokens from being stored, while the code is still good.
    private func prepare() async throws -> AccountConnector.Preparation {
        try dependencies.vault.checkMaySeal()
        let preparation = try await accountConnector(nil).prepare()
        let (token, account, caller, now) = (tokens.accessToken, identity.owner, caller, dependencies.time.now)
        try await dependencies.store.transact { transaction in
            _ = try caller.check(in: transaction, at: now)
            try transaction.refuse(token, issuedTo: account, at: now)
        }
        try await commitNote(at: now)
        return preparation
    }

    /// Returns the key that the refresh token will be bound to, or `nil` if it will not be bound.
    ///
    /// A token that some worker could not refresh would be worse than one that is not bound. The key is recorded first,
    /// so that no worker goes on with a ring that lacks it.
    private func prepareBinding() async throws -> BindingKey? {
        guard exchanges.bindsTokens else { return nil }
        let ring = dependencies.vault.ring
        let store = dependencies.store
        let key: BindingKey
        switch BindingKeyChoice(from: ring.current, for: try await store.liveWorkers()) {
        case .key(let id):
            key = try ring.current.bindingKey(id)
        case .unshared(let id, let workers):
            dependencies.log.diagnostics.warning(
                "a refresh token is not bound, because other workers lack the binding key: give them the key ring",
                ["key": id.description, "workers": workers.joined(separator: ", "), "request": requestID]
            )
            return nil
        case .missing:
            throw StoreError(.refused, "bind-tokens is on, but \(ring.name) has no binding key")
        }
        try await store.recordBindingKey(key.id, of: ring)
        return key
    }

    /// Commits something, because a commit shows what a read does not: a full disk, or a server that has become a
    /// standby.
    private func commitNote(at now: Timestamp) async throws {
        let former = try await dependencies.store.note(Self.note)
        let text = "\(now.milliseconds) \(dependencies.random.nextBits())"
        // If another exchange replaces the note first, its commit shows the same.
        _ = try await dependencies.store.replaceNote(Self.note, from: former, with: text)
    }

    // MARK: Whose tokens they are

    /// The tokens as they can be stored while their account is unknown: with the app's access token, whose owner is
    /// known.
    private func unchecked(
        _ refreshToken: Secret?,
        boundTo bindingKey: BindingKey?,
        lifetime: Duration? = nil
    ) -> ExchangedTokens {
        let now = dependencies.time.now
        var exchanged = ExchangedTokens(
            userID: caller.userID,
            target: tokens.target,
            clientID: client.id,
            owner: identity.owner,
            scope: tokens.grantedScope(identity),
            accessToken: tokens.accessToken,
            accessTokenExpiresAt: tokens.accessTokenEnd(identity, at: now),
            isExchanged: false,
            refreshToken: refreshToken,
            bindingKeyID: bindingKey?.id,
            receivedAt: now
        )
        // Google named no end for the code of an iOS app (https://github.com/google/GoogleSignIn-iOS/issues/565), and its
        // SDK tells the app.
        if let lifetime = lifetime ?? tokens.refreshTokenLifetime { exchanged.refreshTokenExpiresAt = now + lifetime }
        return exchanged
    }

    private func check(
        _ response: TokenResponse,
        bringing unchecked: ExchangedTokens,
        preparedBy preparation: AccountConnector.Preparation
    ) async -> CodeExchanges.Outcome {
        let account: Grant.Owner
        do throws(LookupError) {
            account = try await self.account(of: response)
        } catch {
            // The first refresh checks the account, as for every grant.
            return await store(unchecked, preparedBy: preparation)
        }
        guard account.googleUserID == identity.googleUserID else {
            exchanges.hold(nil, for: key)
            log("a server auth code belongs to another account than the access token", because: "account_mismatch")
            revocation.revoke(response.rotated ?? response.accessToken, ofAccount: account)
            return .refused(.codeOfOtherAccount)
        }
        var exchanged = unchecked
        exchanged.accessToken = response.accessToken
        exchanged.accessTokenExpiresAt = exchanged.receivedAt + response.lifetime
        exchanged.isExchanged = true
        exchanged.scope = response.scope ?? exchanged.scope
        return await store(exchanged, preparedBy: preparation)
    }

    private func account(of response: TokenResponse) async throws(LookupError) -> Grant.Owner {
        if let account = response.account { return Grant.Owner(googleUserID: account) }
        let owner = try await exchanges.endpoint.userInfo(accessToken: response.accessToken)
        return Grant.Owner(googleUserID: owner.googleUserID, email: owner.email)
    }

    // MARK: Storing

    private func accountConnector(_ exchanged: ExchangedTokens?) -> AccountConnector {
        AccountConnector(
            dependencies: dependencies,
            tokens: tokens,
            identity: identity,
            caller: caller,
            exchanged: exchanged
        )
    }

    /// Stores the tokens, and tries until that succeeds or the worker stops.
    private func store(
        _ exchanged: ExchangedTokens,
        preparedBy preparation: AccountConnector.Preparation
    ) async -> CodeExchanges.Outcome {
        exchanges.hold(exchanged, for: key)
        var pause = Self.firstPause
        while true {
            do {
                let connected = try await accountConnector(exchanged).store(preparedBy: preparation)
                exchanges.hold(nil, for: key)
                return .stored(Self.connectedGrant(connected, by: exchanged))
            } catch let error as AppError {
                // The user was deleted, signed out or connected otherwise while the code was exchanged.
                exchanges.hold(nil, for: key)
                revocation.revoke(exchanged.refreshToken ?? exchanged.accessToken, ofAccount: identity.owner)
                return .refused(error)
            } catch {
                dependencies.engine.reportStoreFailure(error, waiting: 1)
            }
            do {
                try await dependencies.time.sleep(for: pause)
            } catch {
                return .failed(AppError.stillConnecting)
            }
            pause = min(pause * 2, Self.maximumPause)
        }
    }

    private static func connectedGrant(
        _ connected: AccountConnector.Connected,
        by exchanged: ExchangedTokens
    ) -> CodeExchanges.ConnectedGrant {
        CodeExchanges.ConnectedGrant(
            relation: connected.relation,
            id: connected.grant.id,
            scope: connected.grant.scope,
            lacksRefreshToken: exchanged.refreshToken == nil && !connected.hasWorkingRefreshToken
        )
    }

    // MARK: Reports

    private var revocation: UnstoredTokenRevocation {
        UnstoredTokenRevocation(
            dependencies: dependencies,
            exchanges: exchanges,
            userID: caller.userID,
            clientID: client.id,
            requestID: requestID
        )
    }

    private func recordAcceptedCode() {
        exchanges.forgetForeign()
        dependencies.log.end([.codesRefused])
    }

    /// Without the alarm's client: status hides alarms of clients without grants, and this one might have none yet.
    private func raiseAlarm(_ problem: String, because reason: String) {
        dependencies.log.raise(.codesRefused, "Google refuses \(problem) (\(reason))")
    }

    private func log(_ message: StaticString, because reason: String) {
        dependencies.log.diagnostics.info(message, ["reason": reason, "request": requestID])
    }
}

extension AccountConnector.Connected {
    /// `true` if the grant kept a refresh token that Google had not refused.
    fileprivate var hasWorkingRefreshToken: Bool {
        guard grant.refreshToken != nil else { return false }
        guard let formerState else { return true }
        return !formerState.endsRefreshes
    }
}
