import Base

extension Command {
    /// `restore FILE`: puts a backup in place of the database.
    static let restore = Command(
        words: ["restore"],
        summary: "put a backup in place, while no worker runs",
        discussion: """
            Takes an archive of 'backup --archive', or a plain copy of 'backup', which goes to the configured database. \
            It first checks the whole file, and refuses while a process has the database open. It then puts each file in \
            its place with its mode, for the user that runs the command, which for root is the service's.

            A former database is kept: it and its log move into a folder former-TIME beside it. A former configuration \
            file gets that ending. Any other file that exists and differs stays as it is, above all the key ring.

            It says which files are missing, and ends as 'doctor' does. docs/operate.md#back-up-and-restore has the steps.
            """,
        operands: [.file("the backup")],
        settings: Setting.Name.allCases.filter { $0 != .runOnce },
        examples: [
            "refresh-worker restore /var/lib/refresh-worker/backup.tar": "after the worker was stopped"
        ],
        exitCodes: .ofDatabase(.badData, .inputUnreadable, .cannotCreate, .peerUnreachable)
    ) { arguments, context, _ in
        guard let database = context.configuration.database.file else {
            throw CommandError(
                .configuration,
                "\(context.configuration.database) is on a PostgreSQL server: restore it with pg_restore"
            )
        }
        let lines = try await BlockingCallQueue.files.run {
            try Restoration(of: arguments.operand, database: database, context: context).run()
        }
        for line in lines { Output.standard.line(line) }
        // The configuration of the backup.
        let restored = CommandContext(configuration: try Configuration(context.inputs), inputs: context.inputs)
        for line in restored.configuration.missingFiles(for: restored.inputs) { Output.standard.line(line) }
        return try await CommandArguments(command: .runDoctor).run(in: restored)
    }
}
