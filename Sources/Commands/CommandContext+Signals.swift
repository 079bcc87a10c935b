import Scheduler
import Telemetry
import Worker

/// Stops commands that refresh or revoke when a signal arrives.
extension CommandContext {
    /// Runs a command's work until it is done or a signal comes.
    ///
    /// After a signal no more requests are sent, and leases are given back. Requests in flight have until the deadline.
    /// A second SIGTERM or SIGINT ends the process immediately. The first must not: the answer that is in flight may
    /// bring a rotated refresh token, without which the user has to sign in again.
    func untilSignal<Value: Sendable>(
        stopping engine: RefreshEngine,
        within deadline: Duration,
        spill: ResultSpillFile,
        _ body: @escaping @Sendable () async throws -> Value
    ) async -> InterruptibleResult<Value> {
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
        guard let signal = await stop.value else { return .finished(result) }
        return .stopped(signal)
    }
}

/// The result of a command's work, or the signal that stopped it.
enum InterruptibleResult<Value: Sendable>: Sendable {
    case finished(Result<Value, any Error>)
    case stopped(SignalPolicy.Signal)
}
