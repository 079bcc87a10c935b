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
            Each line is a JSON object with user_id and optionally email, email_verified, name, picture, \
            google_user_id, is_active, last_login, and created_on or created_at: a date such as 2026-01-31, a time \
            such as 2026-01-31T12:00:00Z, or seconds since 1970. Beside a date in created_on, created_at may be a \
            time of day in UTC. Objects that are spread over several lines are read too, so is one array around them \
            all, and so are rows of a DynamoDB export ({"Item": {"UserID": {"S": …}}}), with or without Item.
            """,
            """
            --map names the fields of files that name them otherwise: paypulse for rows of PayPulse's DynamoDB table \
            Users (UserID, Email, Name, CreatedOn, CreatedAt), comprehension-engine for rows of ComprehensionEngine's \
            PostgreSQL table users (id, google_id, avatar_url), or FIELD=NAME,… with the names above and the file's own.
            """,
            """
            Bad lines are reported with their number and skipped; the good ones are stored. A line about a user who \
            is stored adds what was not known, and takes the earlier creation; what differs stays, and is reported, \
            unless --replace is given. What a line does not say always stays. An import that was interrupted can be \
            started again.
            """,
            """
            At the end a line counts the users that were read, stored, completed, replaced, kept with other content \
            than the file's, unchanged, and bad. The same command again, with --dry-run, counts every user as \
            unchanged if the database holds what the file says. A dry run takes each line by itself, so it does not \
            see that two lines of one file contradict each other.
            """,
        ],
        operands: [.file("the file to read; - is standard input")],
        options: [
            OptionSpecification(
                name: "map",
                kind: .text(as: "MAP", AllowedText(lengthLimit: 1024, signs: "=,_-.:$#@/")),
                summary: "paypulse, comprehension-engine, or FIELD=NAME,… for other names of fields"
            ),
            OptionSpecification(name: "replace", kind: .toggle, summary: "replace what is known of stored users"),
            OptionSpecification(name: "dry-run", kind: .toggle, summary: "store nothing and say what would be done"),
        ],
        settings: [.config, .database, .logLevel],
        examples: [
            Example(line: "refresh-worker users import users.jsonl", purpose: "from a file"),
            Example(
                line: "zcat export/data/*.json.gz | refresh-worker users import - --map paypulse",
                purpose: "from an export of PayPulse's table"
            ),
            Example(
                line: """
                    psql -Atc 'SELECT row_to_json(u) FROM users u' | refresh-worker users import - --map comprehension-engine
                    """,
                purpose: "from ComprehensionEngine's database"
            ),
        ],
        exitCodes: [
            .success, .usage, .badData, .inputUnreadable, .internalFailure, .inputOutput, .leftForLater,
            .configuration,
        ],
        problems: mapProblems,
        make: makeImport
    )

    @Sendable
    private static func mapProblems(_ arguments: CommandArguments) -> [String] {
        guard case .failure(let problem) = map(in: arguments) else { return [] }
        return ["--map: \(problem.message)"]
    }

    @Sendable
    private static func makeImport(_ arguments: CommandArguments) -> Command {
        guard case .success(let map) = map(in: arguments) else {
            preconditionFailure("a map with a problem was refused before")
        }
        return .importUsers(
            UserImportOrder(
                file: arguments.operand,
                map: map,
                replacesExisting: arguments.has("replace"),
                isDryRun: arguments.has("dry-run")
            )
        )
    }

    private static func map(in arguments: CommandArguments) -> Result<UserFieldMap, ImportProblem> {
        guard let argument = arguments.options["map"] else { return .success(.unmapped) }
        do throws(ImportProblem) {
            return .success(try UserFieldMap(reading: argument))
        } catch {
            return .failure(error)
        }
    }
}
