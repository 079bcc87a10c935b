import Base
import Storage
import Telemetry
package import Worker

/// `users list`, `users show USER` and `users delete USER`.
extension CommandContext {
    package func listUsers(isJSON: Bool) async throws -> ExitCode {
        let output = BlockingCallQueue(label: "refresh-worker.output")
        let isEmpty = try await withExistingStore(for: .reading) { store in
            var table = UserTable(width: Output.standard.width)
            var last: String?
            while true {
                let page = try await store.users(after: last, atMost: Self.pageSize)
                guard let lastUser = page.last else { return last == nil }
                last = lastUser.id
                let lines = isJSON ? page.map { UserDocument.line(of: $0).text } : table.lines(of: page, at: time.now)
                try await output.run { Output.standard.line(lines.joined(separator: "\n")) }
            }
        }
        if isEmpty && !isJSON { Output.error.line("no user is stored") }
        return .success
    }

    package func showUser(_ id: String, isJSON: Bool) async throws -> ExitCode {
        let (user, grant) = try await withExistingStore(for: .reading) { store in
            guard let user = try await store.user(id) else { throw CommandFailure(unknownUser: id) }
            return (user, try await store.grant(ofUser: id))
        }
        if isJSON {
            Output.standard.line(UserDocument.line(of: user, grant: grant).bytes)
        } else {
            UserReport.lines(about: user, grant: grant, at: time.now).forEach(Output.standard.line)
        }
        return .success
    }

    package func deleteUser(_ id: String, isJSON: Bool) async throws -> ExitCode {
        let store = try await openExistingStore(for: .changing)
        let now = time.now
        let outcome: AccountDeletion.Outcome
        do {
            let deleted = try await store.transact { transaction in
                try AccountDeletion.delete(user: id, in: transaction, at: now)
            }
            guard let deleted else { throw CommandFailure(unknownUser: id) }
            outcome = deleted
        } catch {
            await store.close()
            throw error
        }
        func print(_ end: RevocationEnd?) {
            Output.standard.line(
                isJSON ? UserDeletionReport.json(id, outcome, end).text : UserDeletionReport.sentence(id, outcome, end)
            )
        }
        guard outcome.grant != nil else {
            await store.close()
            print(nil)
            return .success
        }
        let end: RevocationEnd
        let code: ExitCode
        do {
            (end, code) = try await finishRevocation(of: id, isShared: outcome.isShared, in: store)
        } catch {
            // The user is deleted, whatever prevents the revocation.
            await store.close()
            print(.pending)
            throw error
        }
        print(end)
        return code
    }
}

/// The output of `users delete`.
enum UserDeletionReport {
    static func json(_ id: String, _ outcome: AccountDeletion.Outcome, _ end: RevocationEnd?) -> JSONLine {
        var line = JSONLine()
        line.field("user_id", id)
        line.field("ended_sessions", outcome.endedSessions)
        line.fieldOrNull("revocation", end?.rawValue)
        return line
    }

    static func sentence(_ id: String, _ outcome: AccountDeletion.Outcome, _ end: RevocationEnd?) -> String {
        let sessions = outcome.endedSessions == 1 ? "1 session" : "\(outcome.endedSessions) sessions"
        let grant = end.map { "the grant is disconnected here\($0.clause)" } ?? "there was no grant"
        return "deleted user \(DisplayedText(id)) and \(sessions); \(grant)"
    }
}

extension CommandFailure {
    fileprivate init(unknownUser id: String) {
        self.init(.unknownUser, "no user \(DisplayedText(id)) is stored, or the user was deleted")
    }
}

/// A user as JSON: the output of `users list` and `users show`.
enum UserDocument {
    static func line(of user: User) -> JSONLine {
        var line = JSONLine()
        line.field("user_id", user.id)
        line.fieldOrNull("email", user.email)
        if let isVerified = user.emailIsVerified {
            line.field("email_verified", isVerified)
        } else {
            line.null("email_verified")
        }
        line.fieldOrNull("name", user.name)
        line.fieldOrNull("picture", user.picture)
        line.fieldOrNull("google_user_id", user.googleUserID)
        line.field("is_active", user.isActive)
        line.field("created_at", user.createdAt.iso8601)
        line.fieldOrNull("last_login", user.lastLoginAt?.iso8601)
        line.fieldOrNull("deleted_until", user.deletedUntil?.iso8601)
        return line
    }

    /// Returns the same fields and the user's grant, as `grants show` prints it.
    static func line(of user: User, grant: Grant?) -> JSONLine {
        var line = line(of: user)
        if let grant {
            line.object("grant") { GrantDocument.write(grant, to: &$0) }
        } else {
            line.null("grant")
        }
        return line
    }
}

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

/// Users as a table for people, page by page.
struct UserTable {
    private var table: TextTable

    /// Creates a table for a terminal of this width; `nil` if it is for a pipe or a file.
    init(width: Int?) {
        table = TextTable(
            [
                TextTable.Column(title: "USER", narrowest: 12),
                TextTable.Column(title: "E-MAIL", narrowest: 16),
                TextTable.Column(title: "LAST SIGN-IN"),
                TextTable.Column(title: "CREATED"),
                TextTable.Column(title: "STATE"),
                TextTable.Column(title: "NAME", narrowest: 10),
            ],
            width: width
        )
    }

    /// Returns the lines of the next page, below the titles on the first one.
    mutating func lines(of users: [User], at now: Timestamp) -> [String] {
        table.lines(
            of: users.map { user in
                [
                    TerminalText.escaped(user.id),
                    user.email.map { TerminalText.escaped($0) } ?? "-",
                    user.lastLoginAt.map { "\(RelativeTime($0, from: now))" } ?? "-",
                    "\(RelativeTime(user.createdAt, from: now))",
                    user.status,
                    user.name.map { TerminalText.escaped($0) } ?? "-",
                ]
            }
        )
    }
}

extension User {
    /// The user's status in a word.
    var status: String { isDeleted ? "deleted" : isActive ? "active" : "inactive" }
}
