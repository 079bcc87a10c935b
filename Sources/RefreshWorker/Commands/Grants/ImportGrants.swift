import Base
import Records
import Storage
import Telemetry

extension Command {
    /// `grants import FILE`: imports grants that were kept elsewhere.
    static let importGrants = Command(
        words: ["grants", "import"],
        summary: "import grants from a file of JSON, also from the output of aws secretsmanager",
        discussion: """
            Each line is a JSON object with user_id and the fields of a stored grant: access_token, refresh_token, \
            expires_at, expires_in, scope, token_type, created_at, google_user_id, google_email, google_name, \
            google_verified_email, and optionally connection (default if it is missing), labels (an object of texts), \
            client_id, refresh_token_expires_at, binding_key (the key that the refresh token is bound to), state, reason \
            and since. It also reads objects over several lines, \
            one array around all objects, rows of a DynamoDB export with these fields, and the output of aws \
            secretsmanager get-secret-value for a secret gmail/user/USER. A short line is enough:

            {"user_id": "alice", "refresh_token": "1//0..."}

            Invalid lines are reported with their number and skipped; valid ones are stored. An existing grant is \
            kept, and reported, unless --replace is given. A grant that its user ended, here or at Google, is replaced \
            only by a line with a new refresh token. A refresh token that its user replaced or ended here, or that a \
            refresh has replaced, does not come back: the last 100 of each user are remembered until the user is \
            deleted. An interrupted import can be started again. The profile shows the name in google_name while the \
            user has none.

            With --from aws-secrets-manager the file is the output of aws secretsmanager batch-get-secret-value or \
            get-secret-value. Each secret whose name begins with the prefix is a grant, and the rest of its name is \
            the user. The client id comes from the secret Google-OAuth-Client-ID before them, unless exactly one is \
            configured here. With --replace a stored grant is replaced only where the secret is newer: where its \
            created_at, or the date of its version where that is earlier, is later than the stored grant's arrival, \
            its last rotation and its end. The script import-from-aws reads the secrets and imports them \
            (docs/moving.md).
            """,
        operands: [.file("the file to read; - is standard input")],
        options: [
            .toggle("replace", "replace grants that are already stored"),
            OptionSpecification(
                "from",
                .choice(["aws-secrets-manager"], as: "SOURCE"),
                "the form of the file: aws-secrets-manager for what the aws program prints"
            ),
            OptionSpecification(
                "prefix",
                .text(as: "PREFIX", maximumLength: 512, signs: "/_+=.@-"),
                "the prefix of the names, before the user. Default: \(SecretsManagerImport.defaultPrefix)"
            ),
            .toggle(
                "dry-run",
                "store nothing and say what would be done; with --from and --log-level info for each user"
            ),
            .jsonSummary,
        ],
        settings: [.config, .database, .keyFile, .keyCommand, .clientID, .logLevel],
        examples: [
            "refresh-worker grants import grants.jsonl": "from a file",
            "ssh old-host export-grants | refresh-worker grants import -":
                "from another machine, without a copy on disk",
            """
            aws secretsmanager get-secret-value --secret-id gmail/user/alice | refresh-worker grants import -
            """: "one grant, with Amazon's own program",
            """
            aws secretsmanager batch-get-secret-value --secret-id-list gmail/user/alice gmail/user/bob | \
            refresh-worker grants import - --from aws-secrets-manager --dry-run
            """: "show what would be imported from AWS Secrets Manager",
        ],
        exitCodes: .ofDatabase(.badData, .inputUnreadable),
        check: { arguments throws(CommandError) in
            guard arguments.has("from") || !arguments.has("prefix") else {
                throw arguments.refusal(["--prefix has a meaning only with --from"])
            }
        }
    ) { arguments, context, output in
        let (replaces, isDryRun) = (arguments.has("replace"), arguments.has("dry-run"))
        let isFromAWS = arguments.has("from")
        let vault = try context.openVault()
        let input = try InputFile(path: arguments.operand)
        let store = try await context.openStore(forDryRun: isDryRun)
        let heartbeat = store.map { WorkerHeartbeat(of: context, in: $0, vault: vault) }
        do {
            try await heartbeat?.report()
        } catch {
            await heartbeat?.leave()
            await store?.close()
            throw error
        }
        let reporting = Task { await heartbeat?.run(by: context.time) {} }
        let writer = ImportedGrantWriter(
            store: store,
            vault: vault,
            time: context.time,
            random: context.random,
            existing: replaces ? (isFromAWS ? .replaceOlder : .replace) : .keep,
            recordsDates: isFromAWS,
            isDryRun: isDryRun
        )
        let run = ImportRun(
            file: input,
            progress: ImportProgress(of: isFromAWS ? "secrets" : "grants", time: context.time),
            isDryRun: isDryRun,
            isJSON: output.isJSON
        ) {
            reporting.cancel()
            await reporting.value
            await heartbeat?.leave()
            await store?.close()
        }
        guard isFromAWS else {
            return try await run.perform(
                GrantImport(
                    clientIDs: context.configuration.clientIDs,
                    writer: writer,
                    time: context.time,
                    report: run.report
                )
            )
        }
        let reportsDetails = context.configuration.logLevel >= .info
        return try await run.perform(
            SecretsManagerImport(
                prefix: arguments["prefix"] ?? SecretsManagerImport.defaultPrefix,
                clientIDs: context.configuration.clientIDs,
                writer: writer,
                time: context.time,
                report: run.report,
                detail: { if reportsDetails { run.report($0) } }
            )
        )
    }
}
