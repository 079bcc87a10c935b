import Base
package import Crypto
package import Storage

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
        SpilledBindingKey(bindingKeyID).write(into: &line)
        if let end = refreshTokenExpiresAt { line.field("refresh_expires_at", end.milliseconds) }
        if let timeout = refreshTokenTimeout { line.milliseconds("refresh_timeout_ms", timeout) }
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
        guard let bindingKey = SpilledBindingKey(in: object) else { return nil }
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
            bindingKeyID: bindingKey.id,
            refreshTokenExpiresAt: object["refresh_expires_at"]?.timestamp,
            refreshTokenTimeout: object["refresh_timeout_ms"]?.integer.map { .milliseconds($0) },
            receivedAt: receivedAt
        )
    }
}
