import Base
import Records
import Storage

extension Command {
    /// `users import FILE`: imports users that another system has kept.
    static let importUsers = Command(
        words: ["users", "import"],
        summary: "import users from a file of JSON",
        discussion: """
            Each line is a JSON object with user_id and optionally email, email_verified, name, picture, \
            google_user_id, is_active, last_login, and created_on or created_at: a date such as 2026-01-31, a time \
            such as 2026-01-31T12:00:00Z, or seconds since 1970. With a date in created_on, created_at can be a time \
            of day in UTC. It also reads objects over several lines, one array around all objects, and rows of a \
            DynamoDB export ({"Item": {"UserID": {"S": …}}}), with or without Item.

            --map gives the names of the fields in files that use other names: paypulse for rows of PayPulse's \
            DynamoDB table Users (UserID, Email, Name, CreatedOn, CreatedAt), comprehension-engine for rows of \
            ComprehensionEngine's PostgreSQL table users (id, google_id, avatar_url), or FIELD=NAME,… with the names \
            above and the file's own.

            Invalid lines are reported with their number and skipped; valid ones are stored. A line about a stored \
            user adds missing fields, and takes the earlier creation; stored fields that differ are kept and reported, \
            unless --replace is given. Fields that a line does not have are always kept. A user who signed in here with \
            the google_user_id of a line before that line was imported gets the line's user_id, and stays signed in. An \
            interrupted import can be started again.

            At the end a line counts the users that were read, stored, completed, replaced, kept with other content \
            than the file's, unchanged, and bad. The same command again, with --dry-run, counts every user as \
            unchanged if the database has the content of the file. A dry run checks each line alone, so it does not \
            see contradictions between two lines of one file.
            """,
        operands: [.file("the file to read; - is standard input")],
        options: [
            OptionSpecification(
                "map",
                .text(as: "MAP", maximumLength: 1024, signs: "=,_-.:$#@/"),
                "paypulse, comprehension-engine, or FIELD=NAME,… for other names of fields"
            ),
            .toggle("replace", "replace fields of stored users"),
            .toggle("dry-run", "store nothing and say what would be done"),
            .jsonSummary,
        ],
        settings: [.config, .database, .logLevel],
        examples: [
            "refresh-worker users import users.jsonl": "from a file",
            "zcat export/data/*.json.gz | refresh-worker users import - --map paypulse":
                "from an export of PayPulse's table",
            """
            psql -Atc 'SELECT row_to_json(u) FROM users u' | refresh-worker users import - --map comprehension-engine
            """: "from ComprehensionEngine's database",
        ],
        exitCodes: .ofDatabase(.badData, .inputUnreadable),
        check: { arguments throws(CommandError) in
            do throws(InputError) {
                _ = try UserFieldMap(reading: arguments["map"])
            } catch {
                throw arguments.refusal(["--map: \(error.message)"])
            }
        }
    ) { arguments, context, output in
        let isDryRun = arguments.has("dry-run")
        let map = try UserFieldMap(reading: arguments["map"])
        let input = try InputFile(path: arguments.operand)
        let store = try await context.openStore(forDryRun: isDryRun)
        let run = ImportRun(
            file: input,
            progress: ImportProgress(of: "users", time: context.time),
            isDryRun: isDryRun,
            isJSON: output.isJSON,
            close: { await store?.close() }
        )
        return try await run.perform(
            UserImport(
                store: store,
                map: map,
                replacesExisting: arguments.has("replace"),
                isDryRun: isDryRun,
                time: context.time,
                report: run.report
            )
        )
    }
}
