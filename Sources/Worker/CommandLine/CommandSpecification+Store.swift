extension CommandSpecification {
    /// The commands about the database as a whole.
    static let store = CommandSpecification(
        words: ["store"],
        summary: "move all data from one database to another",
        discussion: [
            """
            The worker stores its data in a SQLite file, or in a PostgreSQL database that many workers share. \
            docs/scaling.md says when to move from one to the other, and how.
            """
        ],
        settings: [.config],
        exitCodes: [.usage],
        subcommands: [copy]
    )

    private static let copy = CommandSpecification(
        words: ["store", "copy"],
        summary: "copy a database into an empty one, of either kind",
        discussion: [
            """
            Copies users, grants with their histories, sessions, the health of each client, security events and \
            notices, unchanged: tokens stay sealed, so the new database needs the same key ring. Then it reads both \
            databases and compares them by number and checksum. Leases are not copied.
            """,
            """
            When both are found to be equal, the source is marked as moved: workers and commands that change data \
            refuse it and name the new place, so that a forgotten cron job does not spend refresh tokens there. \
            status, keys list, grants list, show and export still read it, and so do backup and store copy. To go \
            back, copy the new database into an empty one; the old content of the source can be copied again too.
            """,
            """
            Stop every worker and every cron job of both databases first; the copy does not begin while one is alive. \
            A killed worker counts as live for 30 seconds. The source is marked before the first record is read, \
            so that a worker that was suspended cannot continue with it: it stops with code 78 and saves its answers \
            in a spill file (docs/spill-file.md). An interrupted copy continues when the same command is run again. \
            Until it is complete no worker starts on the new database, and after kill -9 none on the old one either.
            """,
            """
            An address with a password cannot be an argument, because every user of the machine can read those. Put \
            the password into a password file that PGPASSFILE names, or the address into a file of mode 0600 and write \
            url-file:FILE.
            """,
        ],
        options: [
            OptionSpecification(name: "from", kind: .database, summary: "the database to copy"),
            OptionSpecification(name: "to", kind: .database, summary: "the database to copy to, which must be empty"),
            .jsonObject,
        ],
        settings: [.config, .logLevel],
        examples: [
            Example(
                line: """
                    refresh-worker store copy --from /var/lib/refresh-worker/grants.sqlite \
                    --to url-file:/etc/refresh-worker/database-url
                    """,
                purpose: "from a file to PostgreSQL"
            ),
            Example(
                line: "refresh-worker store copy --from postgres:///grants --to ./grants.sqlite",
                purpose: "and back"
            ),
        ],
        exitCodes: [
            .success, .usage, .badData, .internalFailure, .cannotCreate, .inputOutput, .leftForLater, .configuration,
        ],
        problems: { arguments in
            ["from", "to"].filter { !arguments.has($0) }.map { name in
                "--\(name) is needed: a database to copy from, and one to copy to"
            }
        },
        make: {
            .copyStore(from: $0.options["from"] ?? "", to: $0.options["to"] ?? "", isJSON: $0.has("json"))
        }
    )
}

extension CommandSpecification {
    /// The commands about results that a database did not accept.
    static let results = CommandSpecification(
        words: ["results"],
        summary: "store results that were kept outside the database",
        discussion: [
            """
            A worker that stops while its database is not writable saves Google's answers in a spill file. The next \
            start, and every command that opens the database, stores them. docs/spill-file.md says when that needs a \
            person.
            """
        ],
        settings: [.config, .database, .keyFile],
        exitCodes: [.usage],
        subcommands: [recover]
    )

    private static let recover = CommandSpecification(
        words: ["results", "recover"],
        summary: "store the results of a spill file in the configured database",
        discussion: [
            """
            Use it for a spill file that was set aside, or that is next to a database that was moved elsewhere. \
            Results that are stored already, or that are out of date, have no effect. The file is removed when all of \
            its results have been stored, and kept otherwise.
            """
        ],
        operands: [.file("the spill file")],
        options: [.jsonObject],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                line: """
                    refresh-worker results recover /var/lib/refresh-worker/grants.sqlite.unsaved-4711-0a1b2c3d \
                    --database postgres:///grants
                    """,
                purpose: "after the database was moved while a worker was suspended"
            )
        ],
        exitCodes: [
            .success, .usage, .badData, .inputUnreadable, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .recoverResults(file: $0.operand, isJSON: $0.has("json")) }
    )
}

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
