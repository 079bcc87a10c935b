extension CommandSpecification {
    /// The commands about the database as a whole.
    static let store = CommandSpecification(
        words: ["store"],
        summary: "move everything from one database to another",
        discussion: [
            """
            The worker keeps what it knows in a SQLite file, or in a PostgreSQL database that many workers share. \
            docs/scaling.md says when to leave the file, and how.
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
            Copies users, grants with their histories, sessions, the health of each client, security events and notices, as \
            they are: tokens stay sealed, so the new place needs the same key ring. Then it reads both databases and compares \
            them by number and checksum. Leases stay behind.
            """,
            """
            When both are found to be the same, the database that was copied is marked as moved: workers and commands that \
            change anything refuse it and say where it went, so that a forgotten cron job does not spend refresh tokens there. \
            status, keys list, grants list, show and export still read it, and so do backup and store copy. To go back, copy the \
            new place into an empty database; what the old one held when it was moved can be copied again too.
            """,
            """
            Stop every worker and every cron job of both databases first; it refuses while one lives. One that was killed \
            counts as living for half a minute. The source is marked before the first record is read, so that a worker that \
            stood still cannot go on with it: it stops with code 78 and keeps what it was answered in a spill file \
            (docs/spill-file.md). A copy that was interrupted goes on where it was when the same line is run again; until it is \
            whole no worker starts on the new place, and after kill -9 none on the old one either.
            """,
            """
            An address with a password cannot be an argument, since every user of the machine can read those. Put the \
            password into a password file that PGPASSFILE names, or the address into a file of mode 0600 and write \
            url-file:FILE.
            """,
        ],
        options: [
            OptionSpecification(name: "from", kind: .database, summary: "the database to copy"),
            OptionSpecification(name: "to", kind: .database, summary: "where to; it must hold nothing yet"),
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
        make: { .copyStore(from: $0.options["from"] ?? "", to: $0.options["to"] ?? "") }
    )
}
