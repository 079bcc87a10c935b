extension CommandSpecification {
    private static let secretsManager = "aws-secrets-manager"

    /// `grants import`, from a file or from what the AWS command line prints.
    static let importing = CommandSpecification(
        words: ["grants", "import"],
        summary: "import grants from a file of JSON, also from the output of aws secretsmanager",
        discussion: [
            """
            Each line is a JSON object with user_id and the fields of a stored grant: access_token, refresh_token, \
            expires_at, expires_in, scope, token_type, created_at, google_user_id, google_email, google_name, \
            google_verified_email, and optionally client_id, refresh_token_expires_at, state, reason and since. It \
            also reads objects over several lines, one array around all objects, rows of a DynamoDB export with these \
            fields, and the output of aws secretsmanager get-secret-value for a secret gmail/user/USER. A short line is enough:
            """,
            #"{"user_id": "alice", "refresh_token": "1//0..."}"#,
            """
            Invalid lines are reported with their number and skipped; valid ones are stored. An existing grant is \
            kept, and reported, unless --replace is given. A grant that its user ended, here or at Google, is replaced \
            only by a line with a new refresh token. A refresh token that its user replaced or ended here does not \
            come back. An interrupted import can be started again. The profile shows the name in google_name while the \
            user has none.
            """,
            """
            With --from aws-secrets-manager the file is the output of aws secretsmanager batch-get-secret-value or \
            get-secret-value. Each secret whose name begins with the prefix is a grant, and the rest of its name is \
            the user. The client id comes from the secret Google-OAuth-Client-ID before them, unless exactly one is \
            configured here. With --replace a stored grant is replaced only where the secret is newer: where its \
            created_at, or the date of its version where that is earlier, is later than the stored grant's arrival, \
            its last rotation and its end. The script import-from-aws reads the secrets and imports them \
            (docs/running.md).
            """,
        ],
        operands: [.file("the file to read; - is standard input")],
        options: [
            OptionSpecification(name: "replace", kind: .toggle, summary: "replace grants that are already stored"),
            OptionSpecification(
                name: "from",
                kind: .choice([secretsManager], as: "SOURCE"),
                summary: "the form of the file: aws-secrets-manager for what the aws program prints"
            ),
            OptionSpecification(
                name: "prefix",
                kind: .text(as: "PREFIX", AllowedText(lengthLimit: 512, signs: "/_+=.@-")),
                summary: "the prefix of the names, before the user. Default: \(GrantImportOptions.defaultPrefix)"
            ),
            OptionSpecification(
                name: "dry-run",
                kind: .toggle,
                summary: "store nothing and say what would be done; with --from and --log-level info for each user"
            ),
            .jsonSummary,
        ],
        settings: [.config, .database, .keyFile, .clientID, .logLevel],
        examples: [
            Example(line: "refresh-worker grants import grants.jsonl", purpose: "from a file"),
            Example(
                line: "ssh old-host export-grants | refresh-worker grants import -",
                purpose: "from another machine, without a copy on disk"
            ),
            Example(
                line: """
                    aws secretsmanager get-secret-value --secret-id gmail/user/alice | refresh-worker grants import -
                    """,
                purpose: "one grant, with Amazon's own program"
            ),
            Example(
                line: """
                    aws secretsmanager batch-get-secret-value --filters Key=name,Values=gmail/user/ | refresh-worker \
                    grants import - --from aws-secrets-manager --dry-run
                    """,
                purpose: "show what would be imported from AWS Secrets Manager"
            ),
        ],
        exitCodes: [
            .success, .usage, .badData, .inputUnreadable, .internalFailure, .inputOutput, .leftForLater,
            .configuration,
        ],
        problems: importProblems,
        make: makeImport
    )

    @Sendable
    private static func importProblems(_ arguments: CommandArguments) -> [String] {
        arguments.has("prefix") && !arguments.has("from") ? ["--prefix has a meaning only with --from"] : []
    }

    @Sendable
    private static func makeImport(_ arguments: CommandArguments) -> Command {
        .importGrants(
            GrantImportOptions(
                file: arguments.operand,
                prefix: arguments.has("from") ? arguments.options["prefix"] ?? GrantImportOptions.defaultPrefix : nil,
                replacesExisting: arguments.has("replace"),
                isDryRun: arguments.has("dry-run"),
                isJSON: arguments.has("json")
            )
        )
    }
}

/// The arguments of `grants import`.
package struct GrantImportOptions: Equatable, Sendable {
    /// The default prefix of the names of secrets, before the user's id.
    static let defaultPrefix = "gmail/user/"

    /// `-` is standard input.
    package let file: String
    /// The prefix of the names of secrets; `nil` for a file of grants.
    package var prefix: String?
    package var replacesExisting = false
    /// `true` for a dry run: nothing is stored.
    package var isDryRun = false
    package var isJSON = false
}

/// The arguments of `users import`.
package struct UserImportOptions: Equatable, Sendable {
    /// `-` is standard input.
    package let file: String
    package var map = UserFieldMap.unmapped
    package var replacesExisting = false
    /// `true` for a dry run: nothing is stored.
    package var isDryRun = false
    package var isJSON = false
}
