package import Base
package import Crypto
package import Storage

extension Grant {
    /// Returns all fields that `grants import` reads, including the tokens.
    ///
    /// Unknown members are left out.
    package func exported(from vault: TokenVault) throws(CryptoError) -> JSONLine {
        // If the user asked to end the grant, its tokens are not exported, even while their revocation is pending.
        let keepsTokens = !(state == .disconnected && reason == .userRequest)
        let access = keepsTokens ? try vault.openAccessToken(of: self) : nil
        let refresh = keepsTokens ? try vault.openRefreshToken(of: self) : nil
        var line = JSONLine()
        line.field("user_id", userID)
        line.field("connection", connection.description)
        line.field("client_id", clientID)
        if let access, let accessToken {
            line.field("access_token", access.reveal())
            line.field("token_type", accessToken.type)
            line.field("created_at", accessToken.obtainedAt.iso8601)
            line.field("expires_at", accessToken.expiresAt.iso8601)
            let span = max(.zero, accessToken.expiresAt - accessToken.obtainedAt)
            line.field("expires_in", span.wholeMilliseconds / 1000)
        }
        if let refresh {
            line.field("refresh_token", refresh.reveal())
            line.fieldIfPresent("refresh_token_expires_at", refreshToken?.expiresAt?.iso8601)
            line.fieldIfPresent("binding_key", refreshToken?.bindingKeyID?.description)
        }
        line.fieldIfPresent("scope", scope.isEmpty ? nil : scope)
        line.fieldIfPresent("google_user_id", owner.googleUserID)
        line.fieldIfPresent("google_email", owner.email)
        line.fieldIfPresent("google_name", owner.name)
        if let isVerified = owner.emailIsVerified { line.field("google_verified_email", isVerified) }
        line.field("state", state.rawValue)
        line.fieldIfPresent("reason", reason == .none ? nil : reason.rawValue)
        line.field("since", since.iso8601)
        if !labels.isEmpty { labels.write(to: &line, as: "labels") }
        return line
    }
}

extension JSONLine {
    fileprivate mutating func fieldIfPresent(_ key: String, _ value: String?) {
        if let value { field(key, value) }
    }
}
