extension CommandSpecification {
    /// The commands about users.
    static let users = CommandSpecification(
        words: ["users"],
        summary: "list, show, import or delete users",
        discussion: [
            """
            Grants and the sessions of the app belong to users. A user is created at the first sign-in, or when a \
            grant of the user is stored; users of another system can be imported.
            """
        ],
        settings: [.config, .database],
        exitCodes: [.usage],
        subcommands: [listUsers, showUser, importUsers, deleteUser]
    )

    private static let importUsers = CommandSpecification(
        words: ["users", "import"],
        summary: "import users from a file of JSON",
        discussion: [
            """
            Each line is a JSON object with user_id and optionally email, email_verified, name, picture, \
            google_user_id, is_active, last_login, and created_on or created_at: a date such as 2026-01-31, a time \
            such as 2026-01-31T12:00:00Z, or seconds since 1970. With a date in created_on, created_at may be a time \
            of day in UTC. It also reads objects over several lines, one array around all objects, and rows of a \
            DynamoDB export ({"Item": {"UserID": {"S": …}}}), with or without Item.
            """,
            """
            --map gives the names of the fields in files that use other names: paypulse for rows of PayPulse's \
            DynamoDB table Users (UserID, Email, Name, CreatedOn, CreatedAt), comprehension-engine for rows of \
            ComprehensionEngine's PostgreSQL table users (id, google_id, avatar_url), or FIELD=NAME,… with the names \
            above and the file's own.
            """,
            """
            Invalid lines are reported with their number and skipped; valid ones are stored. A line about a stored \
            user adds missing fields, and takes the earlier creation; stored fields that differ are kept and reported, \
            unless --replace is given. Fields that a line does not have are always kept. A user who signed in here with \
            the google_user_id of a line before that line was imported gets the line's user_id, and stays signed in. An \
            interrupted import can be started again.
            """,
            """
            At the end a line counts the users that were read, stored, completed, replaced, kept with other content \
            than the file's, unchanged, and bad. The same command again, with --dry-run, counts every user as \
            unchanged if the database has the content of the file. A dry run checks each line alone, so it does not \
            see contradictions between two lines of one file.
            """,
        ],
        operands: [.file("the file to read; - is standard input")],
        options: [
            OptionSpecification(
                name: "map",
                kind: .text(as: "MAP", AllowedText(lengthLimit: 1024, signs: "=,_-.:$#@/")),
                summary: "paypulse, comprehension-engine, or FIELD=NAME,… for other names of fields"
            ),
            OptionSpecification(name: "replace", kind: .toggle, summary: "replace fields of stored users"),
            OptionSpecification(name: "dry-run", kind: .toggle, summary: "store nothing and say what would be done"),
            .jsonSummary,
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
            UserImportOptions(
                file: arguments.operand,
                map: map,
                replacesExisting: arguments.has("replace"),
                isDryRun: arguments.has("dry-run"),
                isJSON: arguments.has("json")
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

/// The commands about single users.
extension CommandSpecification {
    /// `users list`.
    static let listUsers = CommandSpecification(
        words: ["users", "list"],
        summary: "list the stored users",
        discussion: [
            """
            Lists every user by id, with e-mail address, name, last sign-in and creation. A deleted user stays in the \
            list for a while, with the id alone. On a terminal the columns fit its width; in a pipe or a file no text \
            is cut.
            """
        ],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [
            Example(line: "refresh-worker users list", purpose: "a table of all users"),
            Example(
                line: "refresh-worker users list --json | jq -r 'select(.email_verified == false) .user_id'",
                purpose: "the users whose e-mail address is not verified"
            ),
        ],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration],
        make: { .listUsers(isJSON: $0.has("json")) }
    )

    /// `users show`.
    static let showUser = CommandSpecification(
        words: ["users", "show"],
        summary: "show a user's data and the state of the user's grant",
        discussion: ["Shows what is stored about the user, never a token. grants show has more about the grant."],
        operands: [.user("the user to show")],
        options: [.json],
        settings: [.config, .database, .logLevel],
        examples: [Example(line: "refresh-worker users show alice", purpose: "who is alice?")],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration,
        ],
        make: { .showUser(user: $0.operand, isJSON: $0.has("json")) }
    )

    /// `users delete`.
    static let deleteUser = CommandSpecification(
        words: ["users", "delete"],
        summary: "delete a user: sessions, grant and data, here and at Google",
        discussion: [
            """
            Does the same as the app's route DELETE /v1/user/me: it ends the user's sessions, revokes the grant at \
            Google, deletes the user's data and puts the notice user.deleted into the outbox if --notice-url is \
            configured. Only the id is kept, and refused for a day, because tokens that name it may live that long. \
            This cannot be undone.
            """,
            """
            If another stored grant has the same Google account and client, nothing is revoked at Google, because \
            that would end the other grant too. SIGTERM and SIGINT stop it without waiting for Google's answer; a \
            running worker revokes the grant later.
            """,
        ],
        operands: [.user("the user to delete")],
        options: [.json],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .noticeURL, .caFile,
            .logLevel,
        ],
        examples: [Example(line: "refresh-worker users delete alice", purpose: "delete alice at alice's request")],
        exitCodes: [
            .success, .usage, .unknownUser, .internalFailure, .inputOutput, .leftForLater, .configuration, .interrupted,
            .terminated,
        ],
        make: { .deleteUser(user: $0.operand, isJSON: $0.has("json")) }
    )
}
