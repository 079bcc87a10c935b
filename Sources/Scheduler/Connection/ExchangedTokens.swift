package import Base
package import Crypto
package import Storage

/// The tokens that Google gave for a code of the app, from Google's answer until they are stored.
///
/// The code is spent, so the refresh token has no other copy.
package struct ExchangedTokens: Sendable {
    /// The user who brought the code.
    package let userID: String
    /// The connection that the tokens are for.
    package let target: ConnectionTarget
    /// The client that exchanged it, to which the refresh token belongs.
    package let clientID: String
    package let owner: Grant.Owner
    package var scope: String?
    package var accessToken: Secret
    package var accessTokenExpiresAt: Timestamp
    /// `true` if the access token comes from the exchange, `false` if it is the app's own.
    ///
    /// The app's own is stored while the account of the exchanged one is unknown. The grant's first refresh then checks
    /// the account.
    package var isExchanged: Bool
    package let refreshToken: Secret?
    /// The key that Google has bound the refresh token to.
    package let bindingKey: KeyID?
    package var refreshTokenExpiresAt: Timestamp?
    /// The time of Google's answer.
    package let receivedAt: Timestamp

    package init(
        userID: String,
        target: ConnectionTarget,
        clientID: String,
        owner: Grant.Owner,
        scope: String?,
        accessToken: Secret,
        accessTokenExpiresAt: Timestamp,
        isExchanged: Bool,
        refreshToken: Secret?,
        bindingKey: KeyID? = nil,
        refreshTokenExpiresAt: Timestamp? = nil,
        receivedAt: Timestamp
    ) {
        self.userID = userID
        self.target = target
        self.clientID = clientID
        self.owner = owner
        self.scope = scope
        self.accessToken = accessToken
        self.accessTokenExpiresAt = accessTokenExpiresAt
        self.isExchanged = isExchanged
        self.refreshToken = refreshToken
        self.bindingKey = bindingKey
        self.refreshTokenExpiresAt = refreshTokenExpiresAt
        self.receivedAt = receivedAt
    }

    /// `true` if the user has ended or connected the grant since Google's answer.
    ///
    /// A connection without a refresh token replaces none of the same account. The stored one is older then, and might
    /// be dead.
    package func isOutdated(by stored: Grant, in transaction: any StoreTransaction) throws -> Bool {
        if let end = stored.endedByUserAt, end > receivedAt { return true }
        guard let connection = try transaction.lastConnection(of: stored.id), connection > receivedAt else {
            return false
        }
        if stored.owner.isOtherAccount(than: owner) { return true }
        guard let token = stored.refreshToken else { return false }
        return token.consentedAt.map { $0 >= receivedAt } ?? true
    }

    /// Returns the user's other connection of this account, if it was connected after Google's answer: its consent is
    /// the newer one.
    package func newerConnection(than target: Grant?, in transaction: any StoreTransaction) throws -> Grant? {
        try transaction.grants(ofUser: userID).first { grant in
            guard grant.id != target?.id, grant.state.isConnected, grant.isConnection(of: owner) else { return false }
            guard let connectedAt = try transaction.lastConnection(of: grant.id) else { return false }
            return connectedAt > receivedAt
        }
    }

    /// Returns the tokens sealed for a grant.
    package func sealed(for id: GrantID, with vault: TokenVault) throws(CryptoError) -> IncomingTokens {
        var incoming = IncomingTokens(clientID: clientID, owner: owner, scope: scope)
        incoming.accessToken = Grant.AccessToken(
            sealed: try vault.seal(accessToken: accessToken, for: id),
            obtainedAt: receivedAt,
            expiresAt: accessTokenExpiresAt
        )
        if isExchanged { incoming.issuedDigest = IssuedTokens.digest(of: accessToken) }
        if let refreshToken {
            incoming.refreshToken = try vault.seal(
                refreshToken: refreshToken,
                for: id,
                boundTo: bindingKey,
                expiresAt: refreshTokenExpiresAt,
                consentedAt: receivedAt
            )
        }
        return incoming
    }
}

/// The form of tokens in a spill file: one sealed value, as a result is.
///
/// The tokens in it are not sealed for a grant, because the user might have another one by the time they are stored.
extension ExchangedTokens {
    private static let version = 1

    package func spilled(with vault: TokenVault) throws(CryptoError) -> SealedSecret {
        var line = JSONLine()
        line.field("exchanged", Self.version)
        line.field("user", userID)
        line.field("connection", target.text)
        if target == .default(maySwitch: false) { line.field("refuses_switch", true) }
        line.field("client", clientID)
        if let id = owner.googleUserID { line.field("google_user_id", id) }
        if let email = owner.email { line.field("email", email) }
        if let name = owner.name { line.field("name", name) }
        if let isVerified = owner.emailIsVerified { line.field("email_verified", isVerified) }
        if let scope { line.field("scope", scope) }
        line.field("access_token", accessToken.reveal())
        line.field("access_expires_at", accessTokenExpiresAt.milliseconds)
        line.field("is_exchanged", isExchanged)
        if let refreshToken { line.field("refresh_token", refreshToken.reveal()) }
        if let bindingKey { line.field("binding_key", bindingKey.description) }
        if let end = refreshTokenExpiresAt { line.field("refresh_expires_at", end.milliseconds) }
        line.field("received_at", receivedAt.milliseconds)
        return try vault.seal(spilledResult: Secret(utf8: line.bytes))
    }

    /// Opens sealed tokens, or returns `nil` if the value is the result of a refresh.
    package static func open(_ sealed: SealedSecret, with vault: TokenVault) throws -> ExchangedTokens? {
        let text = try vault.open(spilledResult: sealed).reveal()
        guard let object = JSONValue.object(in: text.utf8), let version = object["exchanged"] else { return nil }
        guard version.integer == Int64(Self.version), let tokens = ExchangedTokens(object) else {
            throw FileError("Tokens in it were written by another version of refresh-worker.")
        }
        return tokens
    }

    private init?(_ object: JSONValue) {
        guard let userID = object["user"]?.string, let clientID = object["client"]?.string,
            let accessToken = object["access_token"]?.string, let isExchanged = object["is_exchanged"]?.bool,
            let accessTokenExpiresAt = object["access_expires_at"]?.timestamp,
            let receivedAt = object["received_at"]?.timestamp
        else { return nil }
        guard let connection = (object["connection"] ?? .string("")).string,
            let target = ConnectionTarget(connection, refusesSwitch: object["refuses_switch"] == .bool(true))
        else { return nil }
        let bindingKey = object["binding_key"]?.string.flatMap { KeyID($0) }
        // Without its key the token would be sent without a proof.
        guard object["binding_key"] == nil || bindingKey != nil else { return nil }
        self.init(
            userID: userID,
            target: target,
            clientID: clientID,
            owner: Grant.Owner(
                googleUserID: object["google_user_id"]?.string,
                email: object["email"]?.string,
                name: object["name"]?.string,
                emailIsVerified: object["email_verified"]?.bool
            ),
            scope: object["scope"]?.string,
            accessToken: Secret(accessToken),
            accessTokenExpiresAt: accessTokenExpiresAt,
            isExchanged: isExchanged,
            refreshToken: object["refresh_token"]?.string.map { Secret($0) },
            bindingKey: bindingKey,
            refreshTokenExpiresAt: object["refresh_expires_at"]?.timestamp,
            receivedAt: receivedAt
        )
    }
}

extension ResultRecovery {
    /// Stores the tokens of codes, each in a transaction of its own.
    package mutating func store(
        _ list: [ExchangedTokens],
        into store: any Store,
        sealingWith vault: TokenVault,
        time: any TimeSource,
        random: any RandomSource
    ) async throws {
        // The newest first: older ones of the same connection are outdated then.
        for tokens in list.sorted(by: { $0.receivedAt > $1.receivedAt }) {
            let (id, connection, now) = (GrantID.random(from: random), ConnectionID.random(from: random), time.now)
            do {
                let isCurrent = try await store.transact { transaction in
                    try tokens.store(in: transaction, newID: id, newConnection: connection, sealingWith: vault, at: now)
                }
                if isCurrent { stored += 1 } else { outdated += 1 }
            } catch let error as StoreError where error.code == .conflict {
                // One user's data must not keep all others from their refreshes.
                contradicting += 1
            }
        }
    }
}

extension ExchangedTokens {
    /// Stores the tokens of a former process as a grant of their user.
    ///
    /// Returns `false` if they no longer count: the user was deleted, or has connected or disconnected the account since.
    /// Storing them twice has no further effect.
    fileprivate func store(
        in transaction: any StoreTransaction,
        newID: GrantID,
        newConnection: ConnectionID,
        sealingWith vault: TokenVault,
        at now: Timestamp
    ) throws -> Bool {
        if try transaction.user(userID)?.isDeleted ?? false { return false }
        var stored: Grant?
        var connection = newConnection
        let grants = try transaction.grants(ofUser: userID)
        do throws(ConnectionTargetError) {
            // The code is spent: more connections than the limit are better than a lost refresh token.
            switch try target.resolve(among: grants, account: owner, limit: .max) {
            case .stored(let grant): stored = grant
            case .missing(let id): connection = id ?? newConnection
            }
        } catch {
            return false
        }
        if target.keepsAccount, let stored, stored.owner.isOtherAccount(than: owner) { return false }
        if try newerConnection(than: stored, in: transaction) != nil { return false }
        let id = stored?.id ?? newID
        let incoming = try sealed(for: id, with: vault)
        var reconnection: Reconnection?
        if let stored {
            if stored.holds(incoming.refreshToken) { return true }
            if try isOutdated(by: stored, in: transaction) { return false }
            reconnection = Reconnection(
                stored: stored,
                incoming: incoming,
                replacesRefreshToken: true,
                discardsStored: stored.owner.isOtherAccount(than: owner) || stored.reason == .userRequest
                    || stored.hasTokenOfAnotherAccount
            )
        }
        let new = NewConnection(id: id, userID: userID, connection: connection)
        _ = try transaction.connect(incoming, as: new, changing: stored, by: reconnection, at: now)
        return true
    }
}
