import Base
import Storage
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
