import Base
import Scheduler
import Storage

extension Command {
    /// `backup FILE`: copies the database while workers continue.
    static let backUp = Command(
        words: ["backup"],
        summary: "copy the database while the worker runs",
        discussion: """
            Writes a complete, consistent copy of the SQLite file. Tokens in it stay sealed: keep the key ring apart \
            from the copy, and keep both. An existing file is not overwritten. For a PostgreSQL database it prints the \
            command of pg_dump that does the same.
            """,
        operands: [.file("the file to create")],
        options: [.jsonObject],
        settings: [.config, .database, .logLevel],
        examples: ["refresh-worker backup /var/backups/grants.sqlite": "a copy for tonight"],
        exitCodes: .ofDatabase(.cannotCreate)
    ) { arguments, context in
        let file = arguments.operand
        guard let database = context.configuration.database.file else {
            throw CommandError(notBackedUp: context.configuration.database, to: file)
        }
        try checkDestination(file)
        guard context.inputs.files.exists(database) else {
            throw CommandError(missing: context.configuration.database)
        }
        let progress = TerminalProgress()
        let store = try await context.openFile(database, time: context.time)
        try await CommandContext.using(store) {
            // The results of a spill file hold tokens that are newer than those in the database.
            if try await store.movedTo == nil {
                try await context.recoverResults(into: store, of: .file(database), use: .changing)
            }
            defer { progress.clear() }
            do {
                try await store.backup(to: file) { copied, all in
                    let percent = all > 0 ? copied * 100 / all : 100
                    progress.show("copied \(copied) of \(all) pages (\(percent) %)")
                }
            } catch let error as StoreError {
                throw CommandError(notBackedUp: error)
            }
        }
        let bytes = try FileStatus.of(file)?.size ?? 0
        let text = """
            copied the database to \(file), \(bytes.inBytes)
            Its tokens stay sealed: the copy is useless without the key ring. Keep both, in different places.
            """
        context.answer(text) { line in
            line.field("file", file)
            line.field("bytes", bytes)
        }
        return .success
    }

    /// Throws errors that are clearer than SQLite's own.
    private static func checkDestination(_ file: String) throws {
        if try FileStatus.of(file) != nil {
            throw CommandError(.cannotCreate, "\(file) exists already and was not changed: name another file")
        }
        let folder = FileStatus.folder(of: file)
        guard try FileStatus.of(folder)?.kind == .folder else {
            throw CommandError(
                .cannotCreate,
                "\(file) cannot be created, because its folder does not exist: run: mkdir -p \(folder)"
            )
        }
        guard FileStatus.mayWrite(folder) else {
            throw CommandError(
                .cannotCreate,
                "\(file) cannot be created, because this user may not write in \(folder): choose another folder"
            )
        }
    }
}

extension CommandError {
    /// PostgreSQL has its own backup tools, which do this better than this program could.
    fileprivate init(notBackedUp database: DatabaseLocation, to file: String) {
        self.init(
            .configuration,
            """
            \(database) is on a PostgreSQL server, which has its own backup tool: run: pg_dump --format=custom \
            --schema=refresh_worker --file=\(file) '\(database)'
            its tokens stay sealed: keep a copy of the key ring as well, apart from it
            """
        )
    }

    fileprivate init(notBackedUp error: StoreError) {
        switch error.code {
        case .cannotOpen, .readOnly: self.init(.cannotCreate, error.message)
        default: self.init(error as any Error)
        }
    }
}

extension Command {
    /// `results recover FILE`: stores the results of a spill file.
    static let recoverResults = Command(
        words: ["results", "recover"],
        summary: "store the results of a spill file in the configured database",
        discussion: """
            Use it for a spill file that was set aside, or that is next to a database that was moved elsewhere. \
            Results that are stored already, or that are out of date, have no effect. The file is removed when all of \
            its results have been stored, and kept otherwise.
            """,
        operands: [.file("the spill file")],
        options: [.jsonObject],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            """
            refresh-worker results recover /var/lib/refresh-worker/grants.sqlite.unsaved-4711-0a1b2c3d \
            --database postgres:///grants
            """: "after the database was moved while a worker was suspended"
        ],
        exitCodes: .ofDatabase(.badData, .inputUnreadable)
    ) { arguments, context in
        let path = arguments.operand
        guard context.inputs.files.exists(path) else {
            throw CommandError(.inputUnreadable, "\(path) does not exist, or cannot be reached")
        }
        let vault = try context.openVault()
        let store = try await context.openExistingStore(for: .changing)
        /// The numbers are unknown if the opening of the database has stored the results.
        func answer(_ text: String, _ summary: ResultRecovery? = nil) {
            context.answer(text) { line in
                line.field("file", path)
                line.fieldOrNull("stored", summary?.stored)
                line.fieldOrNull("outdated", summary?.outdated)
                line.fieldOrNull("unknown", summary?.unknown)
            }
        }
        return try await CommandContext.using(store) {
            guard context.inputs.files.exists(path) else {
                answer("everything in \(path) was stored when the database was opened")
                return .success
            }
            guard let (summary, problem) = try await context.recover(path, into: store, vault) else {
                throw CommandError(.leftForLater, "\(path) is in use by another process: try again when it has ended")
            }
            if let problem {
                throw CommandError(
                    .badData,
                    "\(path) could not be recovered completely: \(problem). \(summary.sentence); the file was not removed"
                )
            }
            guard summary != ResultRecovery() else {
                throw CommandError(.badData, "\(path) contains no results, and was not removed")
            }
            try SpillFile.remove(path)
            answer("\(summary.sentence); \(path) is removed", summary)
            return .success
        }
    }
}
