import SQLiteStore
import Store

/// `backup FILE`: a copy of the database while workers go on.
extension Workshop {
    func backUp(to file: String) async throws -> ExitCode {
        try checkDestination(file)
        let progress = TerminalProgress(to: .error)
        try await withExistingStore { store in
            defer { progress.clear() }
            do {
                try await store.backup(to: file) { step in
                    let share = step.pagesInAll > 0 ? step.pagesCopied * 100 / step.pagesInAll : 100
                    progress.show("copied \(step.pagesCopied) of \(step.pagesInAll) pages (\(share) %)")
                }
            } catch let error as StoreError {
                throw CommandFailure(notBackedUp: error)
            }
        }
        let size = try FileFacts.of(file).map { ByteCount.text($0.size) } ?? "0 bytes"
        Output.standard.line(
            """
            copied the database to \(file), \(size)
            Its tokens stay sealed: the copy is of no use without the key ring. Keep both, apart from each other.
            """
        )
        return .success
    }

    /// Says in plain words what SQLite would say about a file of another name.
    private func checkDestination(_ file: String) throws {
        if try FileFacts.of(file) != nil {
            throw CommandFailure(.cannotCreate, "\(file) exists already and is left as it is: name another file")
        }
        let folder = FileFacts.folder(of: file)
        guard try FileFacts.of(folder)?.kind == .folder else {
            throw CommandFailure(
                .cannotCreate,
                "\(file) cannot be made, because its folder does not exist: run: mkdir -p \(folder)"
            )
        }
        guard FileFacts.mayWrite(folder) else {
            throw CommandFailure(
                .cannotCreate,
                "\(file) cannot be made, because this user may not write in \(folder): choose another folder"
            )
        }
    }
}

extension CommandFailure {
    fileprivate init(notBackedUp error: StoreError) {
        switch error.code {
        case .cannotOpen, .readOnly: self.init(.cannotCreate, error.message)
        default: self.init(error as any Error)
        }
    }
}
