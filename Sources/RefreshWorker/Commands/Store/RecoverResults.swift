import Base
import Scheduler
import Storage

extension Command {
    /// `results recover FILE`: stores the results of a spill file.
    static let recoverResults = Command(
        words: ["results", "recover"],
        summary: "store the results of a spill file in the configured database",
        discussion: """
            Use it for a spill file that was set aside, or that is next to a database that was moved elsewhere. \
            Results that are stored already, or that are out of date, have no effect. The file is removed when all of \
            its results have been stored, and kept otherwise. The tokens of codes belong to a user \
            id, and the same id can be another user in another database. So tokens from a file of another database are \
            only stored if --of-database names it.
            """,
        operands: [.file("the spill file")],
        options: [
            OptionSpecification(
                "of-database",
                .text(as: "DATABASE", maximumLength: 40, signs: "_"),
                "the database of the file, as the message names it, whose users are those of this one"
            ),
            .jsonObject,
        ],
        settings: [.config, .database, .keyFile, .keyCommand, .logLevel],
        examples: [
            """
            refresh-worker results recover /var/lib/refresh-worker/grants.sqlite.unsaved-4711-0a1b2c3d \
            --database postgres:///grants
            """: "after the database was moved while a worker was suspended",
            """
            refresh-worker results recover /var/lib/refresh-worker/grants.sqlite.unsaved-4711-0a1b2c3d \
            --of-database db_0123456789abcdef01234567
            """: "after this database has taken the place of that one",
        ],
        exitCodes: .ofDatabase(.badData, .inputUnreadable)
    ) { arguments, context, output in
        let path = arguments.operand
        guard context.inputs.files.exists(path) else {
            throw CommandError(.inputUnreadable, "\(path) does not exist, or cannot be reached")
        }
        let vault = try context.openVault()
        let store = try await context.openExistingStore(for: .changing)
        /// The numbers are unknown if the opening of the database has stored the results.
        func answer(_ text: String, summary: ResultRecovery? = nil) {
            output.answer(text) { line in
                line.field("file", path)
                line.fieldOrNull("stored", summary?.stored)
                line.fieldOrNull("outdated", summary?.outdated)
                line.fieldOrNull("unknown", summary?.unknown)
            }
        }
        return try await store.closing {
            guard context.inputs.files.exists(path) else {
                answer("everything in \(path) was stored when the database was opened")
                return .success
            }
            let recovery = SpillRecovery(context, formerDatabase: try arguments.formerDatabase)
            guard let recovered = try await recovery.recover(path, into: store, with: vault) else {
                throw CommandError(.leftForLater, "\(path) is in use by another process: try again when it has ended")
            }
            let summary = recovered.summary
            if let problem = recovered.problem {
                throw CommandError(
                    .badData,
                    "\(path) could not be recovered completely: \(problem). \(summary.sentence); the file was not removed"
                )
            }
            guard summary != ResultRecovery() else {
                throw CommandError(.badData, "\(path) contains no results, and was not removed")
            }
            try SpillFile.remove(path)
            answer("\(summary.sentence); \(path) is removed", summary: summary)
            return .success
        }
    }
}

extension CommandArguments {
    /// The database that `--of-database` names.
    fileprivate var formerDatabase: DatabaseID? {
        get throws(CommandError) {
            guard let text = self["of-database"] else { return nil }
            guard let database = DatabaseID(text) else {
                throw CommandError(
                    .usage,
                    "--of-database: \(DisplayedText(text)) is not db_ and 24 lower-case hexadecimal digits"
                )
            }
            return database
        }
    }
}
