import Base
import Storage
package import Worker

/// `backup FILE`: copies the database while workers continue.
extension CommandContext {
    package func backUp(to file: String, isJSON: Bool = false) async throws -> ExitCode {
        guard let database = configuration.database.file else {
            throw CommandFailure(notBackedUp: configuration.database, to: file)
        }
        try checkDestination(file)
        guard inputs.files.exists(database) else { throw CommandFailure(missing: configuration.database) }
        let progress = TerminalProgress(to: .error)
        let store = try await openFile(database, time: time)
        try await Self.using(store) {
            // The results of a spill file hold tokens that are newer than those in the database.
            if try await store.movedTo == nil {
                try await recoverResults(into: store, of: .file(database), use: .changing)
            }
            defer { progress.clear() }
            do {
                try await store.backup(to: file) { step in
                    let percent = step.pagesInAll > 0 ? step.pagesCopied * 100 / step.pagesInAll : 100
                    progress.show("copied \(step.pagesCopied) of \(step.pagesInAll) pages (\(percent) %)")
                }
            } catch let error as StoreError {
                throw CommandFailure(notBackedUp: error)
            }
        }
        let bytes = try FileStatus.of(file)?.size ?? 0
        guard !isJSON else {
            var line = JSONLine()
            line.field("file", file)
            line.field("bytes", bytes)
            Output.standard.line(line.bytes)
            return .success
        }
        Output.standard.line(
            """
            copied the database to \(file), \(ByteCount.text(bytes))
            Its tokens stay sealed: the copy is useless without the key ring. Keep both, in different places.
            """
        )
        return .success
    }

    /// Throws errors that are clearer than SQLite's own.
    private func checkDestination(_ file: String) throws {
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
