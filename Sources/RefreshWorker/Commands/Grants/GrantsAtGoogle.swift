import Base
import Crypto
import HTTPClient
import Routes
import Scheduler
import Storage
import Telemetry

extension Command {
    /// `token USER`: prints one fresh access token.
    static let printToken = Command(
        words: ["token"],
        summary: "print a fresh access token of a user",
        discussion: """
            Prints the access token alone on standard output; with --json as an object with the fields of the answer \
            that a service gets from the internal listener (docs/services.md). A stored token that is valid long enough \
            is printed immediately; otherwise the grant is refreshed, never by this command and a running worker at \
            the same time. Problems are reported on standard error, and the exit code shows their kind.

            SIGTERM and SIGINT stop it: no more requests are sent, a request in flight has 20 seconds for its answer, \
            which is stored, and no token is printed. A second signal ends it immediately.
            """,
        operands: [.user("the user whose token is wanted")],
        options: [
            OptionSpecification(
                "min-ttl",
                .seconds(0...86_400),
                "the time for which the token must be valid at least. Default: 60",
                standard: "60"
            ),
            .jsonObject,
        ],
        settings: [.config, .database, .keyFile, .clientID, .clientSecretFile, .tokenEndpoint, .caFile, .logLevel],
        examples: [
            "refresh-worker token alice --min-ttl 300 > /run/user/1000/token":
                "a token that is valid for five more minutes, not shown on the terminal"
        ],
        exitCodes: .ofDatabase(.unknownUser, .peerUnreachable, .userMustAct, .interrupted, .terminated)
    ) { arguments, context in
        let user = arguments.operand
        let minimumLife = arguments.seconds("min-ttl")
        let vault = try context.openVault()
        let store = try await context.openExistingStore(for: .changing)
        let http = try context.openHTTP()
        let spill = context.openSpill(vault: vault)
        let engine = try context.openQuietEngine(store: store, vault: vault, http: http, spill: spill)
        let heartbeat = context.heartbeat(in: store, of: vault)
        // The limit of the wait for a database that does not accept the answer.
        let limit = Task {
            try await context.time.sleep(for: .seconds(40))
            context.report(await engine.stop(within: .zero), in: spill)
        }
        defer { limit.cancel() }
        // An answer in flight might be the only copy of a rotated refresh token.
        let stopDeadline = min(context.configuration.stopDeadline, CommandContext.maximumStop)
        let (result, signal) = await context.untilSignal(stopping: engine, within: stopDeadline, spill: spill) {
            try await heartbeat.report()
            do {
                return try await engine.freshToken(of: user, minimumLife: minimumLife)
            } catch {
                guard !vault.ring.missingKeys.isEmpty else { throw error }
                // A second report finds out whether another worker has the unknown key.
                try await heartbeat.report()
                return try await engine.freshToken(of: user, minimumLife: minimumLife)
            }
        }
        await heartbeat.leave()
        await store.close()
        http.shutDown()
        if let signal { return ExitCode(signal) }
        let token: VendedToken
        do {
            token = try result.get()
        } catch let failure as VendingError {
            throw CommandError(failure, ofUser: user)
        }
        if let warning = token.warning {
            context.diagnostics.warning(
                "this is the stored token; the last refresh of the grant failed",
                ["reason": warning]
            )
        }
        // The token is printed because the operator asked for it.
        context.answer(token.accessToken.reveal()) { token.write(to: &$0, at: context.time.now) }
        return .success
    }
}

extension Command {
    /// `grants disconnect USER`: ends a grant here, and at Google unless another user's grant would end with it.
    static let disconnectGrant = Command(
        words: ["grants", "disconnect"],
        summary: "end a user's grant, here and at Google",
        discussion: """
            Moves the grant to disconnected immediately and revokes it at Google; its tokens are wiped when that has \
            succeeded or was tried for a day. The history is kept. If another stored grant has the same Google \
            account, and a client of the same Cloud project, nothing is revoked at Google, because that would end the \
            other grant too.

            On a terminal it asks before. SIGTERM and SIGINT stop it without waiting for Google's answer; a running \
            worker revokes the grant later.
            """,
        operands: [.user("the user whose grant to end")],
        options: [.dryRun, .yes, .json],
        settings: [
            .config, .database, .keyFile, .clientID, .clientSecretFile, .revocationEndpoint, .caFile, .logLevel,
        ],
        examples: [
            "refresh-worker grants disconnect alice --dry-run": "would it be revoked at Google too?",
            "refresh-worker grants disconnect alice": "end alice's grant",
        ],
        exitCodes: .ofDatabase(.unknownUser, .interrupted, .terminated)
    ) { arguments, context in
        let user = arguments.operand
        let store = try await context.openExistingStore(for: .changing)
        let now = context.time.now
        let missing = CommandError(VendingError.unknownUser, ofUser: user)
        @Sendable func plan(_ ending: GrantEnding) -> String {
            "end the grant of user \(DisplayedText(user)) here\(ending.plannedEnd.planClause)"
        }
        let (outcome, isStored) = try await context.change(store, arguments, of: user, missing: missing, plan: plan) {
            try GrantEnding.end(grantOfUser: user, in: $0, at: now)
        }
        guard isStored else {
            context.answer("would \(plan(outcome))") { outcome.plannedEnd.write(to: &$0, ofUser: user) }
            return .success
        }
        let (end, code) = try await context.finishRevocation(of: user, isShared: outcome.isShared, in: store)
        context.answer("disconnected \(DisplayedText(user)) here\(end.clause)") { end.write(to: &$0, ofUser: user) }
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

extension RevocationEnd {
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

    /// The end of a plan to end a grant here.
    var planClause: String {
        switch self {
        case .done: "; nothing is left to revoke at Google"
        case .pending: " and revoke it at Google"
        case .shared: ", not at Google, because another stored grant shares the Google account"
        }
    }
}

/// Stops commands that refresh or revoke when a signal arrives.
extension CommandContext {
    /// Runs a command's work until it is done or a signal comes, which it returns.
    ///
    /// After a signal no more requests are sent, and leases are given back. Requests in flight have until the deadline.
    /// A second SIGTERM or SIGINT ends the process immediately. The first must not: the answer that is in flight might
    /// bring a rotated refresh token, without which the user has to sign in again.
    func untilSignal<Value: Sendable>(
        stopping engine: RefreshEngine,
        within deadline: Duration,
        spill: ResultSpillFile,
        _ body: @escaping @Sendable () async throws -> Value
    ) async -> (Result<Value, any Error>, SignalPolicy.Signal?) {
        let signals = await SignalStream.start()
        let work = Task { try await body() }
        let stop = Task { () -> SignalPolicy.Signal? in
            for await signal in signals.signals {
                diagnostics.warning("stopping", ["reason": signal.name])
                report(await engine.stop(within: deadline), in: spill)
                work.cancel()
                return signal
            }
            return nil
        }
        let result = await work.result
        signals.stop()
        return (result, await stop.value)
    }

    /// Creates an engine that logs only diagnostics, for commands that print their own answer.
    func openQuietEngine(
        store: any Store,
        vault: TokenVault,
        http: HTTPClient,
        spill: ResultSpillFile
    ) throws -> RefreshEngine {
        openEngine(
            store: store,
            vault: vault,
            http: http,
            log: EngineLog(
                metrics: MetricsLog(sink: nil, worker: workerName, time: time),
                diagnostics: diagnostics,
                counters: IntervalCounters(time: time),
                time: time
            ),
            spill: spill,
            clientSecrets: try Self.clientSecrets(of: configuration)
        )
    }
}
