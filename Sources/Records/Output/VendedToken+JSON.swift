package import Base
internal import Crypto
package import Scheduler

extension VendedToken {
    /// Adds the fields, which the routes and the command `token` share.
    package func write(to line: inout JSONLine, at now: Timestamp) {
        line.field("access_token", accessToken.reveal())
        line.field("token_type", type)
        line.field("expires_in", secondsLeft(at: now))
        line.field("expires_at", expiresAt.iso8601Seconds)
        line.strings("granted_scopes", scope.split(separator: " ").map(String.init))
        line.fieldOrNull("warning", warning)
    }

    /// The whole seconds for which the token still lives.
    package func secondsLeft(at now: Timestamp) -> Int64 {
        max(0, (expiresAt - now).wholeMilliseconds / 1000)
    }
}
