import Base
import Records
import Storage

extension Command {
    /// `users forget`: deletes what identifies the users whose grants ended long ago.
    static let forgetUsers = Command(
        words: ["users", "forget"],
        summary: "forget the users whose grants ended long ago",
        discussion: """
            Does at once what a worker with --forget-ended-after does daily. For each grant that ended more than that \
            many days ago it deletes the tokens, the scopes and the account of the grant, and the e-mail address, name and \
            picture of the user. The user's id here and at Google and the history of the grant stay. Users who have a \
            session, or have signed in since, are left out. The backend gets no notice. This cannot be undone, so days in \
            which the wall clock was set forward do not count until a person confirms the clock ('store clock').
            """,
        options: [.toggle("dry-run", "change nothing and list whom it would forget"), .json],
        settings: [.config, .database, .forgetEndedAfter, .logLevel],
        examples: ["refresh-worker users forget --forget-ended-after 365 --dry-run": "who would be forgotten?"],
        exitCodes: .ofDatabase()
    ) { arguments, context, output in
        guard let retention = context.configuration.forgetEndedAfter else {
            throw arguments.refusal(["'users forget' needs --forget-ended-after"])
        }
        let isDryRun = arguments.has("dry-run")
        let now = context.time.now
        let count = try await context.withExistingStore(for: isDryRun ? .reading : .changing) { store in
            let clock =
                if isDryRun {
                    try await store.deletionClock(by: context.time)
                } else {
                    try await store.advanceDeletionClock(by: context.time)
                }
            if let warning = clock.warning { Output.error.line(warning) }
            let columns = try await store.hasOtherConnections ? forgottenColumnsWithConnections : forgottenColumns
            var list = Listing(columns, json: output.isJSON ? { $0.write(to: &$1) } : nil)
            try await store.forgetGrants(endedBefore: clock.now - retention, isDryRun: isDryRun, at: now) { page in
                _ = try await list.print(page, at: now)
            }
            return list.count
        }
        if !output.isJSON {
            Output.error.line("\(isDryRun ? "would forget" : "forgot") \(count.counted("ended grant"))")
        }
        return .success
    }

    private static let forgottenColumnsWithConnections: [Listing<Grant>.Column] =
        [forgottenColumns[0], GrantColumns.connection] + forgottenColumns.dropFirst()
    private static let forgottenColumns: [Listing<Grant>.Column] = [
        .init(title: "USER", narrowest: 12) { grant, _ in grant.userID.escapingInvisible },
        .init(title: "STATE") { grant, _ in grant.stateWithReason },
        .init(title: "SINCE") { grant, now in grant.since.distance(from: now) },
    ]
}
