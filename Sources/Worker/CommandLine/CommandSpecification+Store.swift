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
