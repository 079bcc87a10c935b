import Base
import HTTPClient
import Scheduler
import Storage
import Telemetry

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
                await engine.stop(within: deadline).report(to: diagnostics, keptIn: spill.path)
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
            clientSecrets: try ClientSecretFile.read(for: configuration)
        )
    }
}
