internal import Base
internal import Crypto
internal import GoogleOAuth
internal import Scheduler
internal import Storage
internal import Telemetry

/// One connection by a code of the app: from the accepted caller to the stored grant.
struct CodeConnection: Sendable {
    /// The note that is written before each exchange.
    private static let note = "last_code_exchange"
    private static let firstPause: Duration = .milliseconds(500)
    private static let maximumPause: Duration = .seconds(10)
    private static let revocationAttempts = 5

    let dependencies: RouteDependencies
    let exchanges: CodeExchanges
    let client: OAuthClientCredentials
    let code: Secret
    let tokens: GmailTokens
    /// The owner of the app's access token, whom the code must belong to.
    let identity: GoogleIdentity
    let caller: AuthenticatedCaller
    /// The id of the request in the log.
    let request: String

    /// Spends the code and stores the grant.
    func outcome(_ key: [UInt8]) async -> CodeExchanges.Outcome {
        let owner: Grant.Owner
        do {
            owner = try await prepare()
        } catch {
            return .failed(error)
        }
        switch await exchanges.endpoint.exchange(code, client: client) {
        case .granted(let response):
            accepted()
            var exchanged = unchecked(response.rotated)
            exchanged.refreshTokenExpiresAt = response.refreshTokenLifetime.map { exchanged.receivedAt + $0 }
            // Held before the account is known: a worker that stops now must not lose the refresh token.
            exchanges.hold(exchanged, for: key)
            return await check(response, exchanged, lookedUp: owner, key)
        case .incomplete(let refreshToken):
            accepted()
            return await store(unchecked(refreshToken), lookedUp: owner, key)
        case .refused(let reason):
            log("a server auth code is refused", reason)
            return .refused(.refusedCode)
        case .foreign(let reason):
            if exchanges.countForeign(of: caller.userID) {
                raiseAlarm("codes of another client: the app's GIDServerClientID must be \(client.id)", reason)
            }
            log("a server auth code is refused", reason)
            return .refused(.refusedCode)
        case .clientRefused(let reason):
            raiseAlarm("the server client \(client.id): check --server-client-id and its secret", reason)
            log("a server auth code could not be exchanged", reason)
            return .failed(APIError.googleUnreachable)
        case .unavailable(let reason):
            log("a server auth code could not be exchanged", reason)
            return .failed(APIError.googleUnreachable)
        }
    }

    // MARK: Before the code is spent

    /// Checks all that could keep the tokens from being stored, while the code is still good.
    ///
    /// Returns the owner of the user's present grant if Google had to be asked for it.
    private func prepare() async throws -> Grant.Owner {
        try dependencies.vault.checkMaySeal()
        let owner = try await connector(nil).lookedUpOwner()
        let (token, account, caller, now) = (tokens.accessToken, identity.owner, caller, dependencies.time.now)
        try await dependencies.store.transact { transaction in
            _ = try caller.check(in: transaction, at: now)
            try transaction.refuse(token, issuedTo: account, at: now)
        }
        // A commit shows what a read does not: a full disk, or a server that has become a standby. If another exchange
        // replaces the note first, its commit shows the same.
        let former = try await dependencies.store.note(Self.note)
        let text = "\(now.milliseconds) \(dependencies.random.nextBits())"
        _ = try await dependencies.store.replaceNote(Self.note, from: former, with: text)
        return owner ?? Grant.Owner()
    }

    // MARK: Whose tokens they are

    /// The tokens as they can be stored while their account is unknown: with the app's access token, whose owner is
    /// known.
    private func unchecked(_ refreshToken: Secret?) -> ExchangedTokens {
        let now = dependencies.time.now
        return ExchangedTokens(
            userID: caller.userID,
            clientID: client.id,
            owner: identity.owner,
            scope: identity.scope ?? tokens.scope,
            accessToken: tokens.accessToken,
            accessTokenExpiresAt: now + (identity.lifetime ?? tokens.lifetime ?? GmailConnector.defaultLifetime),
            isExchanged: false,
            refreshToken: refreshToken,
            receivedAt: now
        )
    }

    private func check(
        _ response: TokenResponse,
        _ unchecked: ExchangedTokens,
        lookedUp owner: Grant.Owner,
        _ key: [UInt8]
    ) async -> CodeExchanges.Outcome {
        var exchanged = unchecked
        switch await account(of: response) {
        case .success(identity.googleUserID):
            exchanged.accessToken = response.accessToken
            exchanged.accessTokenExpiresAt = exchanged.receivedAt + response.lifetime
            exchanged.isExchanged = true
            exchanged.scope = response.scope ?? exchanged.scope
        case .failure:
            // The first refresh checks the account, as for every grant.
            break
        case .success(let other):
            exchanges.hold(nil, for: key)
            log("a server auth code belongs to another account than the access token", "account_mismatch")
            revoke(response.rotated ?? response.accessToken, ofAccount: other)
            return .refused(.codeOfOtherAccount)
        }
        return await store(exchanged, lookedUp: owner, key)
    }

    private func account(of response: TokenResponse) async -> Result<String, LookupError> {
        if let account = response.account { return .success(account) }
        do throws(LookupError) {
            return .success(try await exchanges.endpoint.userInfo(accessToken: response.accessToken).googleUserID)
        } catch {
            return .failure(error)
        }
    }

    // MARK: Storing

    private func connector(_ exchanged: ExchangedTokens?) -> GmailConnector {
        GmailConnector(
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
        lookedUp owner: Grant.Owner,
        _ key: [UInt8]
    ) async -> CodeExchanges.Outcome {
        exchanges.hold(exchanged, for: key)
        var pause = Self.firstPause
        while true {
            do {
                let (relation, grant, former) = try await connector(exchanged).store(lookedUp: owner)
                exchanges.hold(nil, for: key)
                let lacksRefreshToken =
                    exchanged.refreshToken == nil && (grant.refreshToken == nil || former?.endsRefreshes ?? false)
                return .stored(
                    .init(
                        relation: relation,
                        grant: grant.id,
                        scope: grant.scope,
                        lacksRefreshToken: lacksRefreshToken
                    )
                )
            } catch let error as APIError {
                // The user was deleted or signed out while the code was exchanged.
                exchanges.hold(nil, for: key)
                revoke(exchanged.refreshToken ?? exchanged.accessToken, ofAccount: identity.googleUserID)
                return .refused(error)
            } catch {
                dependencies.engine.reportStoreFailure(error, waiting: 1)
            }
            do {
                try await dependencies.time.sleep(for: pause)
            } catch {
                return .failed(APIError.stillConnecting)
            }
            pause = min(pause * 2, Self.maximumPause)
        }
    }

    // MARK: Tokens that are not stored

    /// Revokes a token that no grant gets, unless that would end a stored grant.
    private func revoke(_ token: Secret, ofAccount account: String) {
        exchanges.revoke {
            var pause = Self.firstPause
            for attempt in 1...Self.revocationAttempts {
                do {
                    if try await isRevoked(token, ofAccount: account) { return }
                } catch {
                    // The store might answer the next attempt.
                    dependencies.engine.reportStoreFailure(error, waiting: 0)
                }
                guard attempt < Self.revocationAttempts else { break }
                do {
                    try await dependencies.time.sleep(for: pause)
                } catch {
                    break
                }
                pause = pause * 4
            }
            dependencies.log.diagnostics.warning(
                "a token that is not stored could not be revoked; its user can remove the access at Google",
                ["request": request]
            )
        }
    }

    /// Tries to revoke a token, and returns `true` if it is done, or must not be done.
    private func isRevoked(_ token: Secret, ofAccount account: String) async throws -> Bool {
        // Google ends every token of the account: also one that is not stored yet.
        if exchanges.holdsTokens(ofAccount: account) { return true }
        let (client, store) = (client.id, dependencies.store)
        let askedAt = dependencies.time.now
        let isShared = try await store.transact {
            try GrantEnding.isShared(token, ofAccount: account, clientID: client, in: $0, at: askedAt)
        }
        if isShared { return true }
        guard case .done = await exchanges.endpoint.revoke(token, mayStillSend: { true }) else { return false }
        let now = dependencies.time.now
        try await store.transact {
            try GrantEnding.probeGrants(ofAccount: account, clientID: client, in: $0, at: now)
        }
        await dependencies.engine.storeChanged()
        return true
    }

    private func accepted() {
        exchanges.forgetForeign()
        dependencies.log.end([.codesRefused])
    }

    /// Without the alarm's client: status hides alarms of clients without grants, and this one might have none yet.
    private func raiseAlarm(_ problem: String, _ reason: String) {
        dependencies.log.raise(.codesRefused, "Google refuses \(problem) (\(reason))")
    }

    private func log(_ message: StaticString, _ reason: String) {
        dependencies.log.diagnostics.info(message, ["reason": reason, "request": request])
    }
}

extension RouteDependencies {
    /// The exchanges, and the client that makes them.
    ///
    /// Throws if there is none.
    var codeExchange: (exchanges: CodeExchanges, client: OAuthClientCredentials) {
        get throws(APIError) {
            guard let exchanges, let client = exchanges.client() else { throw .noServerClient }
            return (exchanges, client)
        }
    }

    /// Connects a user's Gmail by a code, or returns what the first request with the same code led to.
    func connection(
        by code: Secret,
        _ tokens: GmailTokens,
        of caller: AuthenticatedCaller,
        _ identity: GoogleIdentity,
        request: String
    ) async throws -> CodeExchanges.Connection {
        let (exchanges, client) = try codeExchange
        let connection = CodeConnection(
            dependencies: self,
            exchanges: exchanges,
            client: client,
            code: code,
            tokens: tokens,
            identity: identity,
            caller: caller,
            request: request
        )
        return try await exchanges.connection(by: code, ofUser: caller.userID, identity.googleUserID) {
            await connection.outcome($0)
        }
    }
}
