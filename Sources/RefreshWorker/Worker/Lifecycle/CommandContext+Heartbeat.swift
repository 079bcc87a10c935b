import Crypto
import Storage

/// The report of a command that seals tokens.
extension CommandContext {
    /// Reports this process to the workers on the database, and runs `body`, which seals tokens.
    ///
    /// In every case it withdraws its report, so that it does not count as a live worker afterwards, and closes the
    /// database.
    func withHeartbeat<Result>(
        in store: any Store,
        of vault: TokenVault,
        _ body: () async throws -> Result
    ) async throws -> Result {
        try await Self.using(store) {
            let heartbeat = heartbeat(in: store, of: vault)
            do {
                try await heartbeat.report()
                let result = try await body()
                await heartbeat.leave()
                return result
            } catch {
                await heartbeat.leave()
                throw error
            }
        }
    }

    /// Creates the report of this process to the workers on the database.
    func heartbeat(in store: any Store, of vault: TokenVault) -> WorkerHeartbeat {
        WorkerHeartbeat(store: store, ring: vault.ring, workerName: workerName, diagnostics: diagnostics)
    }
}
