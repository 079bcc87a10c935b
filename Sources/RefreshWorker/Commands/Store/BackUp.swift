import Base
import Storage

extension Command {
    /// `backup FILE`: copies the database while workers continue.
    static let backUp = Command(
        words: ["backup"],
        summary: "copy the database while the worker runs",
        discussion: """
            Writes a complete, consistent copy of the SQLite file. Tokens in it stay sealed. An existing file is not \
            overwritten. For a PostgreSQL database it prints the command of pg_dump that does the same.

            With --archive the copy is in a tar file, beside the configuration file and the files that it names: all \
            that a restore needs, except for secrets and for credentials that systemd passes. --with-secrets adds the \
            key ring and the files with secrets, in plain text: encrypt such an archive, or keep it where you keep \
            passwords. While it is made it takes the space of two copies. docs/operate.md#back-up-and-restore says how \
            to restore one.

            With --keep the operand is a folder. The copy is named by its time, such as \
            refresh-worker-20270131T030000Z.tar. Older copies of this name are removed, and first what a killed backup \
            has left. refresh-worker-backup.timer does this every night, and status says if it has not.
            """,
        operands: [.file("the file to create; with --keep the folder for it")],
        options: [
            .toggle("archive", "a tar file with the configuration as well"),
            .toggle("with-secrets", "with --archive: the key ring and files with secrets too, in plain text"),
            OptionSpecification("keep", .number(1...10_000), "keep this many copies in the folder, no older ones"),
            .jsonObject,
        ],
        settings: [.config, .database, .keyFile, .keyCommand, .logLevel],
        examples: [
            "refresh-worker backup /var/lib/refresh-worker/copy.sqlite": "a copy for tonight",
            "refresh-worker backup --archive --keep 14 /var/lib/refresh-worker/backups": "every night, for two weeks",
            "refresh-worker backup --archive --with-secrets /var/lib/refresh-worker/all.tar":
                "everything, to move to another machine",
        ],
        exitCodes: .ofDatabase(.cannotCreate),
        check: { arguments throws(CommandError) in
            guard arguments.has("archive") || !arguments.has("with-secrets") else {
                throw arguments.refusal(["--with-secrets needs --archive: a copy of the database has no other files"])
            }
        }
    ) { arguments, context, output in
        let now = context.time.now
        let isArchive = arguments.has("archive")
        let ending = isArchive ? ".tar" : ".sqlite"
        var file = arguments.operand
        var series: BackupSeries?
        if let keep = arguments["keep"].flatMap({ Int($0) }) {
            series = BackupSeries(folder: arguments.operand, ending: ending, keeps: keep)
            file += "/" + BackupSeries.name(at: now, ending: ending)
        }
        let database: String
        switch context.configuration.database {
        case .file(let path): database = path
        case .server(let address): throw CommandError(notBackedUp: address, to: file)
        }
        try DatabaseBackup.checkDestination(file)
        guard context.inputs.files.exists(database) else {
            throw CommandError(missing: context.configuration.database)
        }
        let needed = context.configuration.restoredFiles(
            credentialsDirectory: context.inputs.credentialsDirectory
        )
        let hasSecrets = arguments.has("with-secrets")
        var files: [String] = []
        var missing: [String] = []
        if isArchive { files += needed.open } else { missing += needed.open }
        if hasSecrets { files += needed.secret } else { missing += needed.secret }
        missing += needed.credentials
        // First, because what a killed backup has left can fill the disk.
        var removed = try series?.cleanUp(before: now, diagnostics: context.diagnostics) ?? []
        if isArchive {
            try await DatabaseBackup(context: context).archive(files, andCopyOf: database, in: file)
        } else {
            try await DatabaseBackup(context: context).copyDatabase(database, to: file)
        }
        removed += try series?.cleanUp(after: now, diagnostics: context.diagnostics) ?? []
        let bytes = try FileStatus.of(file)?.size ?? 0
        let copied = ["the database"] + files
        var text = ["copied \(copied.joined(separator: ", ")) to \(file), \(bytes.inBytes)"]
        text.append(
            context.configuration.secrecy(ofCopyWith: files, hasSecrets: hasSecrets && !needed.secret.isEmpty)
        )
        if !missing.isEmpty {
            text.append("A restore also needs, from copies in another place: \(missing.joined(separator: ", "))")
        }
        if !removed.isEmpty { text.append("removed \(removed.joined(separator: ", "))") }
        output.answer(text.joined(separator: "\n")) { line in
            line.field("file", file)
            line.field("bytes", bytes)
            line.strings("files", [database] + files)
            line.strings("other_files", missing)
            line.strings("removed", removed)
        }
        return .success
    }
}

extension CommandError {
    /// PostgreSQL has its own backup tools, which do this better than this program could.
    fileprivate init(notBackedUp database: DatabaseAddress, to file: String) {
        self.init(
            .configuration,
            """
            \(database.url) is on a PostgreSQL server, which has its own backup tool: run: pg_dump --format=custom \
            --schema=\(database.schema.text) --file=\(file) '\(database.urlForPostgres)'
            its tokens stay sealed: keep a copy of the key ring as well, apart from it
            """
        )
    }
}
