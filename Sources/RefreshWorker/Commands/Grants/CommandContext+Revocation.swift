import HTTPClient
import Records
import Scheduler
import Storage

extension CommandContext {
    /// Performs the revocation of a grant that has ended here, in the same way as a running worker would, and closes
    /// the store.
    func finishRevocation(of user: String, isShared: Bool, in store: any Store) async throws
        -> (RevocationEnd, ExitCode)
    {
        guard !isShared else {
            await store.close()
            return (.shared, .success)
        }
        let http = try openHTTP()
        let vault = try openVault()
        let spill = openSpill(vault: vault)
        let engine = try openQuietEngine(store: store, vault: vault, http: http, spill: spill)
        // A revocation does not return a token and can be repeated, so its answer is not awaited after a signal.
        let (result, signal) = await untilSignal(stopping: engine, within: .zero, spill: spill) {
            try await engine.finishRevocation(of: user)
        }
        await store.close()
        http.shutDown()
        if let signal { return (.pending, ExitCode(signal)) }
        return try result.get() ? (.done, .success) : (.pending, .leftForLater)
    }
}
