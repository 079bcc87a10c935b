import Base
import Storage

/// Copies a SQLite database, alone or into an archive with other files.
struct DatabaseBackup {
    let context: CommandContext

    /// Throws errors that are clearer than SQLite's own.
    static func checkDestination(_ file: String) throws {
        if try FileStatus.of(file) != nil {
            throw CommandError(.cannotCreate, "\(file) exists already and was not changed: name another file")
        }
        let folder = file.parentFolder
        guard try FileStatus.of(folder)?.kind == .folder else {
            throw CommandError(
                .cannotCreate,
                "\(file) cannot be created, because its folder does not exist: run: mkdir -p \(folder)"
            )
        }
        guard FileStatus.mayWrite(folder) else {
            throw CommandError(
                .cannotCreate,
                """
                \(file) cannot be created, because user \(FileOwner.nameOfCurrentUser) cannot write in \(folder): \
                choose another folder
                """
            )
        }
    }

    /// Writes the archive under a name of its own, and gives it the file's name when it is complete.
    func archive(_ files: [String], andCopyOf database: String, in file: String) async throws {
        func made<Result>(_ make: () async throws -> Result) async throws(CommandError) -> Result {
            do {
                return try await make()
            } catch {
                throw CommandError(.cannotCreate, "\(file) was not made: \(error)")
            }
        }
        let archive = try await made { try BackupArchive(for: file) }
        defer { archive.removeTemporaries() }
        try await copyDatabase(database, to: archive.databaseCopy)
        try await made {
            try await BlockingCallQueue.files.run {
                try archive.add(database, contentOf: archive.databaseCopy)
                for path in files { try archive.add(path) }
                try archive.publish(as: file)
            }
        }
    }

    func copyDatabase(_ database: String, to file: String) async throws {
        let progress = TerminalProgress()
        let store = try await context.openFile(database, time: context.time)
        try await store.closing {
            // The results of a spill file hold tokens that are newer than those in the database.
            if try await store.movedTo == nil {
                try await SpillRecovery(context).recoverAll(into: store, of: .file(database), use: .changing)
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
    }
}

extension CommandError {
    fileprivate init(notBackedUp error: StoreError) {
        switch error.code {
        case .cannotOpen, .readOnly: self.init(.cannotCreate, error.message)
        default: self.init(error as any Error)
        }
    }
}
