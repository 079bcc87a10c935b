import Base
import Storage
import Worker

extension Command {
    /// `users delete USER`: deletes a user here, and ends the user's grant at Google.
    static let deleteUser = Command(
        words: ["users", "delete"],
        summary: "delete a user: sessions, grant and data, here and at Google",
        discussion: """
            Does the same as the app's route DELETE /v1/user/me: it ends the user's sessions, revokes the grant at \
            Google, deletes the user's data and puts the notice user.deleted into the outbox if --notice-url is \
            configured. Only the id is kept, and refused for a day, because tokens that name it may live that long. \
            This cannot be undone.

            If another stored grant has the same Google account and client, nothing is revoked at Google, because \
            that would end the other grant too. SIGTERM and SIGINT stop it without waiting for Google's answer; a \
            running worker revokes the grant later.
            """,
        operands: [.user("the user to delete")],
        options: [.json],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .noticeURL, .caFile,
            .logLevel,
        ],
        examples: [("refresh-worker users delete alice", "delete alice at alice's request")],
        exitCodes: .ofDatabase(.unknownUser, .interrupted, .terminated)
    ) { arguments, context in
        let id = arguments.operand
        let store = try await context.openExistingStore(for: .changing)
        let now = context.time.now
        let outcome: AccountDeletion
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
            let sessions = outcome.endedSessions == 1 ? "1 session" : "\(outcome.endedSessions) sessions"
            let grant = end.map { "the grant is disconnected here\($0.clause)" } ?? "there was no grant"
            context.answer("deleted user \(DisplayedText(id)) and \(sessions); \(grant)") { line in
                line.field("user_id", id)
                line.field("ended_sessions", outcome.endedSessions)
                line.fieldOrNull("revocation", end?.rawValue)
            }
        }
        guard outcome.grant != nil else {
            await store.close()
            print(nil)
            return .success
        }
        do {
            let (end, code) = try await context.finishRevocation(of: id, isShared: outcome.isShared, in: store)
            print(end)
            return code
        } catch {
            // The user is deleted, whatever prevents the revocation.
            await store.close()
            print(.pending)
            throw error
        }
    }
}
