package import Base
package import Crypto

/// Seals and opens tokens, each bound to the id of its grant or session and to its column.
///
///     let vault = TokenVault(ring: ring)
///     grant.refreshToken = try vault.seal(refreshToken: token, for: grant.id)
///     …
///     let token = try vault.openRefreshToken(of: grant)
package struct TokenVault: Sendable {
    package let ring: ReloadableKeyRing

    package init(ring: ReloadableKeyRing) {
        self.ring = ring
    }

    /// Throws while the ring lacks a key with which other workers seal: new tokens must not be sealed with an older
    /// one.
    package func checkMaySeal() throws(StoreError) {
        if let reason = ring.standbyReason { throw StoreError(.refused, reason) }
    }

    /// Seals a refresh token, with the key that it is bound to, the time of its consent and the end of its own lifetime
    /// if these are known.
    package func seal(
        refreshToken: Secret,
        for id: GrantID,
        boundTo bindingKeyID: KeyID? = nil,
        expiresAt: Timestamp? = nil,
        consentedAt: Timestamp? = nil
    ) throws(CryptoError) -> Grant.RefreshToken {
        Grant.RefreshToken(
            sealed: try ring.current.seal(refreshToken, for: .refreshToken(of: id)),
            marks: TokenMarks(of: refreshToken),
            bindingKeyID: bindingKeyID,
            expiresAt: expiresAt,
            consentedAt: consentedAt
        )
    }

    package func seal(accessToken: Secret, for id: GrantID) throws(CryptoError) -> SealedSecret {
        try ring.current.seal(accessToken, for: .accessToken(of: id))
    }

    package func openRefreshToken(of grant: Grant) throws(CryptoError) -> Secret? {
        guard let token = grant.refreshToken else { return nil }
        return try open(refreshToken: token, for: grant.id)
    }

    package func open(refreshToken token: Grant.RefreshToken, for id: GrantID) throws(CryptoError) -> Secret {
        try ring.open(token.sealed, for: .refreshToken(of: id))
    }

    /// Returns the key that a refresh token is bound to, or `nil` if it is not bound.
    package func bindingKey(of token: Grant.RefreshToken) throws(CryptoError) -> BindingKey? {
        guard let id = token.bindingKeyID else { return nil }
        return try ring.bindingKey(id)
    }

    package func openAccessToken(of grant: Grant) throws(CryptoError) -> Secret? {
        guard let token = grant.accessToken else { return nil }
        return try ring.open(token.sealed, for: .accessToken(of: grant.id))
    }

    package func seal(sessionToken: Secret, for id: SessionID) throws(CryptoError) -> SealedSecret {
        try ring.current.seal(sessionToken, for: .successor(of: id))
    }

    /// Opens the token that replaced the session's previous one.
    package func openSuccessor(_ sealed: SealedSecret, of id: SessionID) throws(CryptoError) -> Secret {
        try ring.open(sealed, for: .successor(of: id))
    }

    /// `true` if the refresh token that the app brings differs from the stored one, belongs to another client, or is
    /// bound to another key.
    ///
    /// One that is brought without a key might be the stored one all the same.
    package func isOther(
        refreshToken brought: Secret?,
        ofClient clientID: String,
        boundTo bindingKeyID: KeyID? = nil,
        than stored: Grant
    ) -> Bool {
        guard let brought else { return false }
        guard stored.clientID == clientID else { return true }
        if let bindingKeyID, bindingKeyID != stored.refreshToken?.bindingKeyID { return true }
        switch Result(catching: { () throws(CryptoError) in try openRefreshToken(of: stored) }) {
        case .success(let known): return known != brought
        // A stored token that no key opens is useless, so the new one replaces it.
        case .failure: return true
        }
    }

    /// Seals a whole result for the spill file.
    package func seal(spilledResult: Secret) throws(CryptoError) -> SealedSecret {
        try ring.current.seal(spilledResult, for: .spilledResult)
    }

    package func open(spilledResult sealed: SealedSecret) throws(CryptoError) -> Secret {
        try ring.open(sealed, for: .spilledResult)
    }
}

extension SealContext {
    /// Results are outside the tables, and contain the names of their grants.
    fileprivate static let spilledResult = SealContext(owner: [], column: "spilled_result")

    static func refreshToken(of id: GrantID) -> SealContext { SealContext(owner: id.rawValue, column: "refresh_token") }

    static func accessToken(of id: GrantID) -> SealContext { SealContext(owner: id.rawValue, column: "access_token") }

    fileprivate static func successor(of id: SessionID) -> SealContext {
        SealContext(owner: id.bytes, column: "session_successor")
    }
}
