import SQLiteStore

extension Workshop {
    /// Opens the database for a command that has nothing to do where there is none, and so must not make one.
    func openExistingStore() async throws -> SQLiteStore {
        guard inputs.files.exists(configuration.database) else {
            throw CommandFailure(
                .configuration,
                """
                the database \(configuration.database) does not exist or cannot be reached: the worker makes it at its \
                first start; name another with --database
                """
            )
        }
        return try await BlockingQueue.files.run { try openStore() }
    }

    /// Does something with the database and closes it, whatever comes of it.
    func withExistingStore<Result>(_ body: (SQLiteStore) async throws -> Result) async throws -> Result {
        let store = try await openExistingStore()
        do {
            let result = try await body(store)
            await store.close()
            return result
        } catch {
            await store.close()
            throw error
        }
    }
}
