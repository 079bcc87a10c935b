extension CommandSpecification {
    /// The commands about users.
    static let users = CommandSpecification(
        words: ["users"],
        summary: "import the backend's users",
        discussion: [
            """
            A user is whom a grant and the sessions of the app belong to. Users appear by themselves when they sign in \
            or when a grant of theirs is stored; those that another system has kept so far can be brought in.
            """
        ],
        settings: [.config, .database],
        exitCodes: [.usage],
        subcommands: [importUsers]
    )

    private static let importUsers = CommandSpecification(
        words: ["users", "import"],
        summary: "bring users in from a file of JSON",
        discussion: [
            """
            Each line is a JSON object with user_id and optionally email, name, picture, google_user_id, is_active and \
            created_on or created_at (ISO 8601, or seconds since 1970). Objects that are spread over several lines are \
            read too, and so is one array around them all.
            """,
            """
            Bad lines are reported with their number and skipped; the good ones are stored. A user of whom more than \
            the id is known is kept, and reported, unless --replace is given; then what a line does not tell stays. An \
            import that was interrupted can be started again.
            """,
        ],
        operands: [.file("the file to read; - is standard input")],
        options: [
            OptionSpecification(name: "replace", kind: .toggle, summary: "replace what is known of stored users")
        ],
        settings: [.config, .database, .logLevel],
        examples: [Example(line: "refresh-worker users import users.jsonl", purpose: "from a file")],
        exitCodes: [
            .success, .usage, .badData, .inputUnreadable, .internalFailure, .inputOutput, .leftForLater,
            .configuration,
        ],
        make: { .importUsers(file: $0.operand, replacesExisting: $0.has("replace")) }
    )
}
