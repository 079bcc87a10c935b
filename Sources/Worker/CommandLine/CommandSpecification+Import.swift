extension CommandSpecification {
    private static let secretsManager = "aws-secrets-manager"
    /// The options that are valid only with `--from`.
    private static let secretsOptions = ["prefix", "region", "aws-endpoint", "aws-credentials-file"]

    /// `grants import`, from a file or from AWS Secrets Manager.
    static let importing = CommandSpecification(
        words: ["grants", "import"],
        summary: "import grants from a file of JSON, or from AWS Secrets Manager",
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
            With --from aws-secrets-manager each secret whose name begins with the prefix is a grant, and the rest of \
            its name is the user. The client id comes from the secret Google-OAuth-Client-ID, unless exactly one is \
            configured here. The credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, \
            or from a file; they need secretsmanager:ListSecrets and secretsmanager:GetSecretValue. Secrets of users \
            who are stored already are not read, so that an import started again is quick. With --replace a stored \
            grant is replaced only where the secret is newer: where its created_at, or the date of its version where \
            that is earlier, is later than the stored grant's arrival, its last rotation and its end.
            """,
        ],
        operands: [.file("the file to read; - is standard input; none with --from", isOptional: true)],
        options: [
            OptionSpecification(name: "replace", kind: .toggle, summary: "replace grants that are already stored"),
            OptionSpecification(
                name: "from",
                kind: .choice([secretsManager], as: "SOURCE"),
                summary: "read from aws-secrets-manager instead of a file"
            ),
            OptionSpecification(
                name: "prefix",
                kind: .text(as: "PREFIX", AllowedText(lengthLimit: 512, signs: "/_+=.@-")),
                summary: "the prefix of the names, before the user. Default: \(SecretsManagerOptions.defaultPrefix)"
            ),
            OptionSpecification(
                name: "region",
                kind: .text(as: "REGION", AllowedText(lengthLimit: 32, signs: "-")),
                summary: "the region of AWS that holds the secrets, such as eu-west-1; needed with --from"
            ),
            OptionSpecification(
                name: "aws-endpoint",
                kind: .endpoint,
                summary: "the address of Secrets Manager, instead of the region's own"
            ),
            OptionSpecification(
                name: "aws-credentials-file",
                kind: .file,
                summary: """
                    a file in the form of ~/.aws/credentials, mode 0600, instead of the environment; the profile is that \
                    of AWS_PROFILE, or default
                    """
            ),
            OptionSpecification(
                name: "dry-run",
                kind: .toggle,
                summary: "store nothing and say what would be done; with --from and --log-level info for each user"
            ),
            .jsonSummary,
        ],
        settings: [.config, .database, .keyFile, .clientID, .caFile, .logLevel],
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
                line: "refresh-worker grants import --from aws-secrets-manager --region eu-west-1 --dry-run",
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
        guard arguments.has("from") else {
            let unexpected = secretsOptions.filter { arguments.has($0) }.map {
                "--\($0) has a meaning only with --from"
            }
            let missing = arguments.operands.isEmpty ? ["'grants import' takes FILE or --from; neither was given"] : []
            return unexpected + missing
        }
        var problems: [String] = []
        if !arguments.operands.isEmpty { problems.append("'grants import' takes either FILE or --from, not both") }
        if !arguments.has("region") { problems.append("--from \(secretsManager) needs --region") }
        return problems
    }

    @Sendable
    private static func makeImport(_ arguments: CommandArguments) -> Command {
        guard arguments.has("from") else {
            return .importGrants(
                file: arguments.operand,
                replacesExisting: arguments.has("replace"),
                isDryRun: arguments.has("dry-run"),
                isJSON: arguments.has("json")
            )
        }
        return .importSecrets(
            SecretsManagerOptions(
                prefix: arguments.options["prefix"] ?? SecretsManagerOptions.defaultPrefix,
                region: arguments.options["region"]?.lowercased() ?? "",
                endpoint: arguments.options["aws-endpoint"],
                credentialsFile: arguments.options["aws-credentials-file"],
                replacesExisting: arguments.has("replace"),
                isDryRun: arguments.has("dry-run"),
                isJSON: arguments.has("json")
            )
        )
    }
}

/// The secrets of AWS Secrets Manager to import, their location, and how to treat them.
package struct SecretsManagerOptions: Equatable, Sendable {
    /// The default prefix of the names, before the user's id.
    static let defaultPrefix = "gmail/user/"
    /// The name of the secret whose text is the client id.
    package static let clientIDName = "Google-OAuth-Client-ID"

    package let prefix: String
    package let region: String
    /// `nil` for Amazon's own endpoint of the region.
    package var endpoint: String?
    package var credentialsFile: String?
    package var replacesExisting = false
    /// `true` for a dry run: nothing is stored.
    package var isDryRun = false
    package var isJSON = false

    /// The URL of the service.
    package var url: String {
        // https://docs.aws.amazon.com/general/latest/gr/asm.html
        endpoint ?? "https://secretsmanager.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")/"
    }
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
