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
    package let bindingKeyID: KeyID?
    package var refreshTokenExpiresAt: Timestamp?
    /// The longest pause after which the refresh token still works, if Google named one.
    package var refreshTokenTimeout: Duration?
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
        bindingKeyID: KeyID? = nil,
        refreshTokenExpiresAt: Timestamp? = nil,
        refreshTokenTimeout: Duration? = nil,
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
        self.bindingKeyID = bindingKeyID
        self.refreshTokenExpiresAt = refreshTokenExpiresAt
        self.refreshTokenTimeout = refreshTokenTimeout
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
        guard let consentedAt = token.consentedAt else { return true }
        return consentedAt >= receivedAt
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
                boundTo: bindingKeyID,
                expiresAt: refreshTokenExpiresAt,
                consentedAt: receivedAt
            )
            if let refreshTokenTimeout {
                incoming.latestDueAt = DuePolicy.latestDue(within: refreshTokenTimeout, after: receivedAt)
            }
        }
        return incoming
    }
}
