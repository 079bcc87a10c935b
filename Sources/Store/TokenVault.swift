package import Secrets

/// Seals a grant's tokens and opens them: each only for its grant's id and its column.
package struct TokenVault: Sendable {
    package let ring: LiveKeyRing

    package init(ring: LiveKeyRing) {
        self.ring = ring
    }

    package func seal(refreshToken: Secret, for id: GrantID) throws(SealError) -> SealedSecret {
        try ring.current.seal(refreshToken, for: .refreshToken(of: id))
    }

    package func seal(accessToken: Secret, for id: GrantID) throws(SealError) -> SealedSecret {
        try ring.current.seal(accessToken, for: .accessToken(of: id))
    }

    package func openRefreshToken(of grant: Grant) throws(SealError) -> Secret? {
        guard let token = grant.refreshToken else { return nil }
        return try ring.open(token.sealed, for: .refreshToken(of: grant.id))
    }

    package func openAccessToken(of grant: Grant) throws(SealError) -> Secret? {
        guard let token = grant.accessToken else { return nil }
        return try ring.open(token.sealed, for: .accessToken(of: grant.id))
    }
}

extension SealContext {
    fileprivate static func refreshToken(of id: GrantID) -> SealContext {
        SealContext(owner: id.rawValue, column: "refresh_token")
    }

    fileprivate static func accessToken(of id: GrantID) -> SealContext {
        SealContext(owner: id.rawValue, column: "access_token")
    }
}
