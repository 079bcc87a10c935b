import Base
import Records
import Storage

extension Command {
    /// `grants disconnect USER`: ends a grant here, and at Google unless another user's grant would end with it.
    static let disconnectGrant = Command(
        words: ["grants", "disconnect"],
        summary: "end a user's grant, here and at Google",
        discussion: """
            Moves the grant to disconnected immediately and revokes it at Google; its tokens are wiped when that has \
            succeeded or was tried for a day. The history is kept. If another stored grant has the same Google \
            account, and a client of the same Cloud project, nothing is revoked at Google, because that would end the \
            other grant too.

            On a terminal it asks before. SIGTERM and SIGINT stop it without waiting for Google's answer; a running \
            worker revokes the grant later.
            """,
        operands: [.user("the user whose grant to end")],
        options: [.connection, .dryRun, .yes, .json],
        settings: [
            .config, .database, .keyFile, .keyCommand, .clientID, .clientSecretFile, .revocationEndpoint, .caFile,
            .logLevel,
        ],
        examples: [
            "refresh-worker grants disconnect alice --dry-run": "would it be revoked at Google too?",
            "refresh-worker grants disconnect alice": "end alice's grant",
        ],
        exitCodes: .ofDatabase(.unknownUser, .interrupted, .terminated)
    ) { arguments, context, output in
        let (user, connection) = (arguments.operand, arguments.connection)
        let store = try await context.openExistingStore(for: .changing)
        let now = context.time.now
        @Sendable func plan(_ ending: GrantDisconnection) -> String {
            "end the grant of user \(DisplayedText(user))\(connection.clause) here\(ending.plannedEnd.planClause)"
        }
        let change = try await IrreversibleChange(of: user, given: arguments, by: context.time)
            .make(in: store, of: connection, plan: plan) { transaction in
                guard
                    let ending = try GrantDisconnection.end(
                        grantOfUser: user,
                        connection: connection,
                        in: transaction,
                        at: now
                    )
                else {
                    // Those of a deleted user count as gone.
                    let grants = try transaction.grants(ofUser: user).filter { $0.reason != .userDeleted }
                    throw CommandError(noGrantOf: user, connection: connection, among: grants)
                }
                return ending
            }
        let outcome = change.outcome
        guard change.isStored else {
            output.answer("would \(plan(outcome))") { line in
                outcome.plannedEnd.write(to: &line, ofUser: user, connection: connection)
            }
            return .success
        }
        let revocation = try await PromptRevocation.run(
            of: [outcome],
            in: store,
            by: context
        )
        let end = revocation.end
        let text = "disconnected \(DisplayedText(user))\(connection.clause) here\(end.clause)"
        output.answer(text) { end.write(to: &$0, ofUser: user, connection: connection) }
        return revocation.exitCode
    }
}
