import Base
import HTTPClient
import Scheduler
import Storage
import Worker

extension Command {
    /// `grants disconnect USER`: ends a grant here, and at Google unless another user's grant would end with it.
    static let disconnectGrant = Command(
        words: ["grants", "disconnect"],
        summary: "end a user's grant, here and at Google",
        discussion: """
            Moves the grant to disconnected immediately and revokes it at Google; its tokens are wiped when that has \
            succeeded or was tried for a day. The history is kept. If another stored grant has the same Google account \
            and client, nothing is revoked at Google, because that would end the other grant too.

            SIGTERM and SIGINT stop it without waiting for Google's answer; a running worker revokes the grant later.
            """,
        operands: [.user("the user whose grant to end")],
        options: [.json],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .caFile, .logLevel,
        ],
        examples: [("refresh-worker grants disconnect alice", "end alice's grant")],
        exitCodes: .ofDatabase(.unknownUser, .interrupted, .terminated)
    ) { arguments, context in
        let user = arguments.operand
        let store = try await context.openExistingStore(for: .changing)
        let now = context.time.now
        let outcome = try await store.transact { transaction -> GrantEnding? in
            guard let grant = try transaction.grant(ofUser: user), grant.reason != .userDeleted else { return nil }
            return try GrantEnding.end(grant, reason: .userRequest, in: transaction, at: now)
        }
        guard let outcome else {
            await store.close()
            throw CommandFailure(VendingError.unknownUser, ofUser: user)
        }
        let (end, code) = try await context.finishRevocation(of: user, isShared: outcome.isShared, in: store)
        context.answer("disconnected \(DisplayedText(user)) here\(end.clause)") { line in
            line.field("user_id", user)
            line.field("revocation", end.rawValue)
        }
        return code
    }
}

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

/// The state of the revocation at Google when a command ends.
enum RevocationEnd: String {
    /// Google has revoked the grant, or there was no token to revoke.
    case done
    /// A running worker tries again for a day.
    case pending
    /// Another stored grant shares the Google account and would end with it.
    case shared = "not_requested"

    /// The end of a sentence about a grant that has ended here.
    var clause: String {
        switch self {
        case .done: " and revoked at Google; the tokens are deleted"
        case .pending: "; the revocation at Google has not succeeded yet: a running worker tries again for a day"
        case .shared:
            """
            , and the tokens deleted; not revoked at Google, because another stored grant shares the Google account \
            and would end with it
            """
        }
    }
}
