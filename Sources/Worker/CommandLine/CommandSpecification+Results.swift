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
