import Base
import Crypto
import HTTPClient
import Records
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
            .connection,
            OptionSpecification(
                "min-ttl",
                .seconds(0...86_400),
                "the time for which the token must be valid at least. Default: 60",
                standard: "60"
            ),
            .jsonObject,
        ],
        settings: [
            .config, .database, .keyFile, .keyCommand, .clientID, .clientSecretFile, .tokenEndpoint, .caFile, .logLevel,
        ],
        examples: [
            "refresh-worker token alice --min-ttl 300 > /run/user/1000/token":
                "a token that is valid for five more minutes, not shown on the terminal"
        ],
        exitCodes: .ofDatabase(.unknownUser, .peerUnreachable, .userMustAct, .interrupted, .terminated)
    ) { arguments, context, output in
        let (user, connection) = (arguments.operand, arguments.connection)
        let minimumLife = arguments.seconds("min-ttl")
        let vault = try context.openVault()
        let store = try await context.openExistingStore(for: .changing)
        let http = try context.openHTTP()
        let work = try await CommandEngine(context, store: store, vault: vault, http: http)
        let engine = work.engine
        let heartbeat = WorkerHeartbeat(of: context, in: store, vault: vault)
        // The limit of the wait for a database that does not accept the answer.
        let limit = Task {
            try await context.time.sleep(for: .seconds(40))
            await work.stop(within: .zero)
        }
        defer { limit.cancel() }
        // An answer in flight might be the only copy of a rotated refresh token.
        let stopDeadline = min(context.configuration.stopDeadline, Pass.maximumStop)
        let end = await work.untilSignal(stoppingWithin: stopDeadline) {
            try await heartbeat.report()
            guard let grant = try await store.grant(ofUser: user, connection: connection) else {
                let grants = try await store.grants(ofUser: user)
                throw CommandError(noGrantOf: user, connection: connection, among: grants)
            }
            do {
                return try await engine.freshToken(of: grant.id, minimumLife: minimumLife)
            } catch {
                guard !vault.ring.missingKeys.isEmpty else { throw error }
                // A second report finds out whether another worker has the unknown key.
                try await heartbeat.report()
                return try await engine.freshToken(of: grant.id, minimumLife: minimumLife)
            }
        }
        await heartbeat.leave()
        await store.close()
        http.shutDown()
        if let signal = end.signal { return ExitCode(signal) }
        let token: VendedToken
        do {
            token = try end.result.get()
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
        output.answer(token.accessToken.reveal()) { token.write(to: &$0, at: context.time.now) }
        return .success
    }
}
