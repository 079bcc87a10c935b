import HTTPClient
import Records
import Scheduler
import Storage

/// The revocation of grants that a command has ended here, in the same way as a running worker would revoke them.
struct PromptRevocation {
    let end: RevocationEnd
    let exitCode: ExitCode

    /// Revokes at Google the grants that are not shared, and closes the store.
    static func run(
        of ends: [GrantDisconnection],
        in store: any Store,
        by context: CommandContext
    ) async throws -> PromptRevocation {
        let revoked = ends.filter { !$0.isShared }.map(\.grant.id)
        guard !revoked.isEmpty else {
            await store.close()
            return PromptRevocation(end: .shared, exitCode: .success)
        }
        let http = try context.openHTTP()
        let vault = try context.openVault()
        let work = try await CommandEngine(context, store: store, vault: vault, http: http)
        // A revocation does not return a token and can be repeated, so its answer is not awaited after a signal.
        let outcome = await work.untilSignal(stoppingWithin: .zero) {
            var isDone = true
            for id in revoked {
                let isRevoked = try await work.engine.revokeNow(id)
                isDone = isDone && isRevoked
            }
            return isDone
        }
        await store.close()
        http.shutDown()
        if let signal = outcome.signal { return PromptRevocation(end: .pending, exitCode: ExitCode(signal)) }
        let isDone = try outcome.result.get()
        return PromptRevocation(
            end: isDone ? .done : .pending,
            exitCode: isDone ? .success : .leftForLater
        )
    }
}
