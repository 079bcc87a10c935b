import Base
import Records
import Storage

extension Command {
    /// `users delete USER`: deletes a user here, and ends the user's grants at Google.
    static let deleteUser = Command(
        words: ["users", "delete"],
        summary: "delete a user: sessions, grants and data, here and at Google",
        discussion: """
            Does the same as the app's route DELETE /v1/user/me: it ends the user's sessions, revokes the grants at \
            Google, deletes the user's data and puts the notice user.deleted into the outbox if --notice-url is \
            configured. Only the id is kept, and refused for a day, or for as long as a token that names it is \
            accepted. This cannot be undone.

            If another stored grant has the same Google account, and a client of the same Cloud project, nothing is \
            revoked at Google, because that would end the other grant too. On a terminal it asks before. SIGTERM and \
            SIGINT stop it without waiting for Google's answer; a running worker revokes the grant later.
            """,
        operands: [.user("the user to delete")],
        options: [.dryRun, .yes, .json],
        settings: [
            .config, .database, .keyFile, .keyCommand, .clientID, .clientSecretFile, .revocationEndpoint, .noticeURL,
            .caFile,
            .logLevel,
        ],
        examples: [
            "refresh-worker users delete alice --dry-run": "what would be deleted?",
            "refresh-worker users delete alice": "delete alice at alice's request",
        ],
        exitCodes: .ofDatabase(.unknownUser, .interrupted, .terminated)
    ) { arguments, context, output in
        let id = arguments.operand
        let store = try await context.openExistingStore(for: .changing)
        let now = context.time.now
        @Sendable func sessions(_ deletion: AccountDeletion) -> String { deletion.endedSessions.counted("session") }
        @Sendable func grants(_ deletion: AccountDeletion) -> String {
            deletion.ends.count == 1 ? "the grant" : "the \(deletion.ends.count) grants"
        }
        @Sendable func plan(_ deletion: AccountDeletion) -> String {
            let plan = "delete user \(DisplayedText(id)) and \(sessions(deletion))"
            guard let end = deletion.plannedEnd else { return plan }
            return "\(plan), and end \(grants(deletion)) here\(end.planClause)"
        }
        let change = try await IrreversibleChange(of: id, given: arguments, by: context.time)
            .make(in: store, plan: plan) { transaction in
                guard let deletion = try AccountDeletion.delete(user: id, in: transaction, at: now) else {
                    throw CommandError(unknownUser: id)
                }
                return deletion
            }
        let outcome = change.outcome
        guard change.isStored else {
            output.answer("would \(plan(outcome))") { line in
                outcome.write(to: &line, ofUser: id, revocation: outcome.plannedEnd)
            }
            return .success
        }
        func print(_ end: RevocationEnd?) {
            var grant = "there was no grant"
            if let end {
                let verb = outcome.ends.count == 1 ? "is" : "are"
                grant = "\(grants(outcome)) \(verb) disconnected here\(end.clause)"
            }
            output.answer("deleted user \(DisplayedText(id)) and \(sessions(outcome)); \(grant)") { line in
                outcome.write(to: &line, ofUser: id, revocation: end)
            }
        }
        guard !outcome.ends.isEmpty else {
            await store.close()
            print(nil)
            return .success
        }
        do {
            let revocation = try await PromptRevocation.run(
                of: outcome.ends,
                in: store,
                by: context
            )
            print(revocation.end)
            return revocation.exitCode
        } catch {
            // The user is deleted, whatever prevents the revocation.
            await store.close()
            print(.pending)
            throw error
        }
    }
}
