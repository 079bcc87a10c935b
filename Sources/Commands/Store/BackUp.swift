import Base
import Storage
import Worker

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
        examples: [("refresh-worker backup /var/backups/grants.sqlite", "a copy for tonight")],
        exitCodes: .ofDatabase(.cannotCreate)
    ) { arguments, context in
        let file = arguments.operand
        guard let database = context.configuration.database.file else {
            throw CommandFailure(notBackedUp: context.configuration.database, to: file)
        }
        try checkDestination(file)
        guard context.inputs.files.exists(database) else {
            throw CommandFailure(missing: context.configuration.database)
        }
        let progress = TerminalProgress(to: .error)
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
                throw CommandFailure(notBackedUp: error)
            }
        }
        let bytes = try FileStatus.of(file)?.size ?? 0
        let text = """
            copied the database to \(file), \(ByteCount.text(bytes))
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
            throw CommandFailure(.cannotCreate, "\(file) exists already and was not changed: name another file")
        }
        let folder = FileStatus.folder(of: file)
        guard try FileStatus.of(folder)?.kind == .folder else {
            throw CommandFailure(
                .cannotCreate,
                "\(file) cannot be created, because its folder does not exist: run: mkdir -p \(folder)"
            )
        }
        guard FileStatus.mayWrite(folder) else {
            throw CommandFailure(
                .cannotCreate,
                "\(file) cannot be created, because this user may not write in \(folder): choose another folder"
            )
        }
    }
}

extension CommandFailure {
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
