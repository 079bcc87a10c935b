extension CommandSpecification {
    /// The commands about results that a database did not accept.
    static let results = CommandSpecification(
        words: ["results"],
        summary: "store results that were kept outside the database",
        discussion: [
            """
            A worker that stops while its database takes nothing writes what Google answered into a spill file. The next start, \
            and every command that opens the database, stores what is in it. docs/spill-file.md says when that needs a hand.
            """
        ],
        settings: [.config, .database, .keyFile],
        exitCodes: [.usage],
        subcommands: [recover]
    )

    private static let recover = CommandSpecification(
        words: ["results", "recover"],
        summary: "store what a spill file holds in the configured database",
        discussion: [
            """
            For a spill file that lies beside a database that was moved elsewhere, or that was set aside. Results that are stored \
            already, or that are out of date, change nothing. The file is removed when everything in it has been stored, and \
            stays where it is otherwise.
            """
        ],
        operands: [.file("the spill file")],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                line: """
                    refresh-worker results recover /var/lib/refresh-worker/grants.sqlite.unsaved-4711-0a1b2c3d \
                    --database postgres:///grants
                    """,
                purpose: "after the database was moved while a worker stood still"
            )
        ],
        exitCodes: [
            .success, .usage, .badData, .inputUnreadable, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .recoverResults(file: $0.operand) }
    )
}
