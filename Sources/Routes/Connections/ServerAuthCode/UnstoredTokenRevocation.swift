internal import Base
internal import Crypto
internal import GoogleOAuth
internal import Scheduler
internal import Storage
internal import Telemetry

/// The revocation of tokens that came for a code and that no grant gets.
struct UnstoredTokenRevocation: Sendable {
    private static let firstPause: Duration = .milliseconds(500)
    private static let maximumAttempts = 5

    let dependencies: AppRoutes.Dependencies
    let exchanges: CodeExchanges
    /// The user who brought the code.
    let userID: String
    let clientID: String
    /// The id of the request in the log.
    let requestID: String

    /// Revokes a token apart from its request, unless that would end a stored grant.
    func revoke(_ token: Secret, ofAccount account: Grant.Owner) {
        exchanges.revoke { await tryToRevoke(token, ofAccount: account) }
    }

    private func tryToRevoke(_ token: Secret, ofAccount account: Grant.Owner) async {
        var pause = Self.firstPause
        for attempt in 1...Self.maximumAttempts {
            do {
                if try await settle(token, ofAccount: account) { return }
            } catch {
                // The store might answer the next attempt.
                dependencies.engine.reportStoreFailure(error, waiting: 0)
            }
            guard attempt < Self.maximumAttempts else { break }
            do {
                try await dependencies.time.sleep(for: pause)
            } catch {
                break
            }
            pause = pause * 4
        }
        dependencies.log.diagnostics.warning(
            "a token that is not stored could not be revoked; its user can remove the access at Google",
            ["request": requestID]
        )
    }

    /// Tries to revoke a token, and returns `true` if it is done, or must not be done.
    private func settle(_ token: Secret, ofAccount account: Grant.Owner) async throws -> Bool {
        // Google ends every token of the account: also one that is not stored yet.
        guard let accountID = account.googleUserID, !exchanges.holdsTokens(ofAccount: accountID) else { return true }
        let (userID, clientID, store) = (userID, clientID, dependencies.store)
        let askedAt = dependencies.time.now
        let isShared = try await store.transact {
            try GrantDisconnection.isShared(
                token,
                ofAccount: account,
                broughtBy: userID,
                clientID: clientID,
                in: $0,
                at: askedAt
            )
        }
        if isShared { return true }
        guard case .done = await exchanges.endpoint.revoke(token, mayStillSend: { true }) else { return false }
        let now = dependencies.time.now
        try await store.transact {
            try GrantDisconnection.makeGrantsDue(ofAccount: accountID, clientID: clientID, in: $0, at: now)
        }
        await dependencies.engine.storeChanged()
        return true
    }
}
