import Crypto
import Storage

/// The report of a command that seals tokens.
extension WorkerHeartbeat {
    init(of context: CommandContext, in store: any Store, vault: TokenVault) {
        self.init(
            store: store,
            ring: vault.ring,
            workerName: context.workerName,
            diagnostics: context.diagnostics
        )
    }

    /// Reports this process to the workers on the database, and runs `body`, which seals tokens.
    ///
    /// In every case it withdraws the report, so that the process does not count as a live worker afterwards, and
    /// closes the database.
    func reporting<Result>(during body: () async throws -> Result) async throws -> Result {
        try await store.closing {
            do {
                try await report()
                let result = try await body()
                await leave()
                return result
            } catch {
                await leave()
                throw error
            }
        }
    }
}
