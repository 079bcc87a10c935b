import Status

extension StatusSnapshot {
    /// Reads the snapshot of an installation whose database is closed before and after.
    static func read(in context: CommandContext) async throws -> StatusSnapshot {
        var snapshot = try await context.withExistingStore(for: .reading) { store in
            try await context.status(from: store).snapshot()
        }
        // Closing the connections has written the log back into the file. The file can be opened only now: see
        // `FileStatus`.
        if let path = context.configuration.database.file {
            let schema = await BlockingCallQueue.files.run { FileStatus.schema(ofDatabaseFile: path) }
            // Zero is a file without tables.
            snapshot.schema = schema == 0 ? nil : schema
        }
        return snapshot
    }
}
