import Clocks
import HTTPClient
import RefreshEngine
import Store
package import WorkerConfiguration
import WorkerLifecycle

/// `grants disconnect USER`: ends a grant here, and at Google unless another user's grant would end with it.
extension CommandContext {
    package func disconnect(_ user: String) async throws -> ExitCode {
        let store = try await openExistingStore(for: .changing)
        let now = time.now
        let outcome = try await store.transact { transaction -> GrantEnding.Outcome? in
            guard let grant = try transaction.grant(ofUser: user), grant.reason != .userDeleted else { return nil }
            return try GrantEnding.end(grant, reason: .userRequest, in: transaction, at: now)
        }
        guard let outcome else { throw CommandFailure(VendingFailure.unknownUser, ofUser: user) }
        if outcome.isShared {
            await store.close()
            Output.standard.line(
                """
                disconnected here and its tokens deleted; not revoked at Google, because another stored grant shares \
                the Google account and would end with it
                """
            )
            return .success
        }
        return try await revoke(user, in: store)
    }

    /// Performs the revocation now, in the same way as a running worker would.
    private func revoke(_ user: String, in store: any GrantStore) async throws -> ExitCode {
        let http = try openHTTP()
        let vault = try openVault()
        let spill = openSpill(vault: vault)
        let engine = openEngine(
            store: store,
            vault: vault,
            http: http,
            log: quietLog(),
            spill: spill,
            clientSecrets: try Self.clientSecrets(of: configuration)
        )
        // A revocation does not return a token and can be repeated, so its answer is not awaited after a signal.
        let end = await untilSignal(stopping: engine, within: .zero, spill: spill) {
            try await engine.finishRevocation(of: user)
        }
        await store.close()
        http.shutDown()
        let isDone: Bool
        let codeIfLeft: ExitCode
        switch end {
        case .finished(let result): (isDone, codeIfLeft) = (try result.get(), .leftForLater)
        case .stopped(let signal): (isDone, codeIfLeft) = (false, ExitCode(signal))
        }
        guard isDone else {
            Output.standard.line(
                "disconnected here; the revocation at Google has not succeeded yet: a running worker tries again for a day"
            )
            return codeIfLeft
        }
        Output.standard.line("disconnected here and revoked at Google; its tokens are deleted")
        return .success
    }
}
