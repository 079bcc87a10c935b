package import Base
import Crypto
package import Scheduler
import Telemetry

extension VendedToken {
    /// Writes the fields of a vended token, which the route and the command `token` share.
    package func write(to line: inout JSONLine, at now: Timestamp) {
        line.field("access_token", accessToken.reveal())
        line.field("token_type", type)
        line.field("expires_in", secondsLeft(at: now))
        line.field("expires_at", expiresAt.iso8601Seconds)
        line.array("granted_scopes") { array in
            for name in scope.split(separator: " ") { array.element(String(name)) }
        }
        line.fieldOrNull("warning", warning)
    }

    /// The whole seconds for which the token still lives.
    func secondsLeft(at now: Timestamp) -> Int64 {
        max(0, (expiresAt - now).wholeMilliseconds / 1000)
    }
}
