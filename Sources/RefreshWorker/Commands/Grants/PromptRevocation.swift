import HTTPClient
import Records
import Scheduler
import Storage

/// The revocation of a grant that a command has ended here, in the same way as a running worker would revoke it.
struct PromptRevocation {
    let end: RevocationEnd
    let exitCode: ExitCode

    /// Revokes the grant at Google unless it is shared, and closes the store.
    static func run(
        ofGrantOf user: String,
        isShared: Bool,
        in store: any Store,
        by context: CommandContext
    ) async throws -> PromptRevocation {
        guard !isShared else {
            await store.close()
            return PromptRevocation(end: .shared, exitCode: .success)
        }
        let http = try context.openHTTP()
        let vault = try context.openVault()
        let work = try CommandEngine(context, store: store, vault: vault, http: http)
        // A revocation does not return a token and can be repeated, so its answer is not awaited after a signal.
        let outcome = await work.untilSignal(stoppingWithin: .zero) {
            try await work.engine.revokeNow(grantOf: user)
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
