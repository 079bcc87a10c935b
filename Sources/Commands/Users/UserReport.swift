import Base
import Storage
import Telemetry

/// Everything known about one user, for people.
enum UserReport {
    static func lines(about user: User, grant: Grant?, at now: Timestamp) -> [String] {
        let email = user.email.map { address in
            let isVerified = user.emailIsVerified.map { $0 ? ", verified" : ", not verified" } ?? ""
            return TerminalText.escaped(address) + isVerified
        }
        return FactList.lines([
            ("user", TerminalText.escaped(user.id)),
            (
                "state",
                user.deletedUntil.map { "deleted; the id is refused until \(FactList.time($0, now))" } ?? user.status
            ),
            ("e-mail", email ?? "-"),
            ("name", (user.name ?? grant?.owner.name).map { TerminalText.escaped($0) } ?? "-"),
            ("google account", user.googleUserID.map { "id \(TerminalText.escaped($0))" } ?? "id unknown"),
            ("last sign-in", FactList.time(user.lastLoginAt, now)),
            ("created", FactList.time(user.createdAt, now)),
            ("grant", self.grant(grant, now)),
        ])
    }

    private static func grant(_ grant: Grant?, _ now: Timestamp) -> String {
        guard let grant else { return "none" }
        let reason = grant.reason == .none ? "" : ", \(grant.reason)"
        return "\(grant.state.rawValue)\(reason), since \(FactList.time(grant.since, now))"
    }
}
