extension CommandSpecification {
    /// The commands about notices to the backend.
    static let notices = CommandSpecification(
        words: ["notices"],
        summary: "notify the backend again of changes that it may have missed",
        discussion: [
            """
            With --notice-url the worker posts one signed notice when an account is disconnected, connected again or \
            loses scopes, when a reused token ends a session, and when a user is deleted. It tries for a day until \
            the notice is accepted. docs/notices.md describes a notice and how to check its signature.
            """
        ],
        settings: [.config, .database],
        exitCodes: [.usage],
        subcommands: [replay]
    )

    private static let replay = CommandSpecification(
        words: ["notices", "replay"],
        summary: "post notices again, under the same ids",
        discussion: [
            """
            Puts the notices of the last day, or of --within, back into the outbox, whether they were accepted or \
            given up; a running worker posts them within a second. Notices are kept for seven days after they were \
            accepted or given up.
            """
        ],
        options: [
            OptionSpecification(
                name: "within",
                kind: .seconds(1...604_800),
                summary: "the age of the oldest notice to post again. Default: 86400 (a day)"
            ),
            OptionSpecification(name: "user", kind: .user, summary: "only the notices of this user"),
            .json,
        ],
        settings: [.config, .database, .logLevel],
        examples: [
            Example(
                line: "refresh-worker notices replay --within 7200",
                purpose: "after the backend has lost the notices of the last two hours"
            )
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { arguments in
            .replayNotices(
                user: arguments.options["user"],
                within: arguments.seconds("within", otherwise: 86_400),
                isJSON: arguments.has("json")
            )
        }
    )
}
