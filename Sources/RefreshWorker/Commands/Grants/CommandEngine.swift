import Base
import HTTPClient
import Scheduler
import Storage
import Telemetry

/// The engine of a command that refreshes or revokes, which logs only diagnostics: the command prints its own answer.
struct CommandEngine {
    /// How the work of a command ended.
    struct End<Value: Sendable>: Sendable {
        let result: Result<Value, any Error>
        /// The signal that stopped it, if one came.
        let signal: SignalPolicy.Signal?
    }

    let engine: RefreshEngine
    private let spill: ResultSpillFile
    private let diagnostics: DiagnosticLog

    init(_ context: CommandContext, store: any Store, vault: TokenVault, http: HTTPClient) async throws {
        spill = context.openSpill(of: try await store.databaseID(from: context.random), vault: vault)
        diagnostics = context.diagnostics
        engine = context.openEngine(
            store: store,
            vault: vault,
            http: http,
            log: EngineLog(
                metrics: MetricsLog(sink: nil, worker: context.workerName, time: context.time),
                diagnostics: context.diagnostics,
                counters: EventCounters(time: context.time),
                time: context.time
            ),
            spill: spill,
            clientSecrets: try ClientSecretFile.read(for: context.configuration)
        )
    }

    /// Runs a command's work until it is done or a signal comes.
    ///
    /// After a signal no more requests are sent, and leases are given back. Requests in flight have until the deadline.
    /// A second SIGTERM or SIGINT ends the process immediately. The first must not: the answer that is in flight might
    /// bring a rotated refresh token, without which the user has to sign in again.
    func untilSignal<Value: Sendable>(
        stoppingWithin deadline: Duration,
        _ body: @escaping @Sendable () async throws -> Value
    ) async -> End<Value> {
        let signals = await SignalStream.start()
        let work = Task { try await body() }
        let stopping = Task { () -> SignalPolicy.Signal? in
            for await signal in signals.signals {
                diagnostics.warning("stopping", ["reason": signal.name])
                await stop(within: deadline)
                work.cancel()
                return signal
            }
            return nil
        }
        let result = await work.result
        signals.stop()
        return End(result: result, signal: await stopping.value)
    }

    /// Stops the engine, and logs what could not be stored.
    func stop(within deadline: Duration) async {
        await engine.stop(within: deadline).report(to: diagnostics, keptIn: spill.path)
    }
}
