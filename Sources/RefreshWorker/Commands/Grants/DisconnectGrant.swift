import Base
import Records
import Scheduler
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
        options: [.dryRun, .yes, .json],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .caFile, .logLevel,
        ],
        examples: [
            "refresh-worker grants disconnect alice --dry-run": "would it be revoked at Google too?",
            "refresh-worker grants disconnect alice": "end alice's grant",
        ],
        exitCodes: .ofDatabase(.unknownUser, .interrupted, .terminated)
    ) { arguments, context, output in
        let user = arguments.operand
        let store = try await context.openExistingStore(for: .changing)
        let now = context.time.now
        let missing = CommandError(VendingError.unknownUser, ofUser: user)
        @Sendable func plan(_ ending: GrantDisconnection) -> String {
            "end the grant of user \(DisplayedText(user)) here\(ending.plannedEnd.planClause)"
        }
        let change = try await IrreversibleChange(of: user, given: arguments, by: context.time)
            .make(in: store, missing: missing, plan: plan) {
                try GrantDisconnection.end(grantOfUser: user, in: $0, at: now)
            }
        let outcome = change.outcome
        guard change.isStored else {
            output.answer("would \(plan(outcome))") { outcome.plannedEnd.write(to: &$0, ofUser: user) }
            return .success
        }
        let revocation = try await PromptRevocation.run(
            ofGrantOf: user,
            isShared: outcome.isShared,
            in: store,
            by: context
        )
        let end = revocation.end
        output.answer("disconnected \(DisplayedText(user)) here\(end.clause)") { end.write(to: &$0, ofUser: user) }
        return revocation.exitCode
    }
}
