import Base
import HTTPClient
import Routes
import Scheduler
import Status
import Storage
import Telemetry

/// The life of a worker, from the first request that it answers to the end of its last part.
extension Worker {
    /// The time for the steps after the engine's stop. The unit's TimeoutStopSec has room for both.
    static let timeToClose: Duration = .seconds(5)
    /// The part of ``timeToClose`` in which loops can end.
    private static let timeToEndLoops: Duration = .seconds(2)

    /// Starts listening.
    ///
    /// The first request needs a recent check of the database, and loops that count as running after a long wait for
    /// it.
    mutating func openListeners() async throws {
        await status.database.check()
        for loop in LoopHeartbeats.Loop.allCases { loopHeartbeats.record(loop) }
        do {
            listeners = try HTTPListeners(self)
        } catch {
            await heartbeat.leave()
            throw error
        }
    }

    /// Runs a daemon until a signal or a permanent refusal of the database stops it.
    func work(until signals: SignalStream) async -> ExitCode {
        let started = context.time.sinceBoot
        let running = start(loops + daemonLoops)
        listeners?.phase.value = .serving
        notify(.ready, .status("refreshing"))
        let reason = await handle(signals)

        notify(.stopping, .status("finishing what is in flight"))
        metrics.record(.stopping(reason: reason.name, inFlight: await engine.inFlight))
        let deadline = context.configuration.stopDeadline
        // Routes can wait for a refresh, so they drain while the engine completes its requests in flight.
        async let drained = listeners?.drain(within: deadline)
        var unstored = await engine.stop(within: deadline)
        if let connections = await drained {
            unstored.spilled += connections.spilled
            unstored.lost += connections.lost
        }
        await stop(running)
        metrics.record(.stopped(uptime: context.time.sinceBoot - started))
        await writer.finish()
        unstored.report(to: context.diagnostics, keptIn: spill.path)
        if let error = reason.error {
            context.diagnostics.error("stopped: the database must not be used any more", ["error": error.message])
            return .configuration
        }
        guard unstored == .none else { return .inputOutput }
        context.diagnostics.notice("stopped")
        return .success
    }

    /// Starts loops, which run until ``stop(_:)``.
    func start(_ loops: [BackgroundLoop]) -> Task<Void, Never> {
        Task {
            await withDiscardingTaskGroup { group in
                for loop in loops { group.addTask { await loop() } }
            }
        }
    }

    /// Stops everything that the start has opened, in reverse order, after the engine.
    func stop(_ loops: Task<Void, Never>) async {
        await context.time.wait(atMost: Self.timeToClose) {
            async let lastTelemetry: Void = sendLastTelemetry()
            await listeners?.stop(within: .seconds(1))
            loops.cancel()
            // If the store fails, each of these would only wait for the same failure.
            if await !engine.isStoreFailing {
                // A notice whose receiver keeps the client's thread busy does not end.
                await context.time.wait(atMost: Self.timeToEndLoops) { await loops.value }
                await engine.recordClock()
                await heartbeat.leave(at: context.time.now)
            }
            await lastTelemetry
            await store.close()
        }
        http.shutDown()
    }

    /// Reloads on SIGHUP, and returns the first reason to stop.
    private func handle(_ signals: SignalStream) async -> StopReason {
        await withTaskGroup(of: StopReason?.self) { group in
            group.addTask {
                for await signal in signals.signals {
                    guard signal == .hangUp else { return StopReason(name: signal.name) }
                    notify(.reloading(monotonicMicroseconds: SystemdNotifier.monotonicMicroseconds))
                    await reload()
                    notify(.ready)
                }
                return nil
            }
            group.addTask {
                for await error in engine.fatalStoreErrors {
                    return StopReason(name: error.code.rawValue, error: error)
                }
                return nil
            }
            defer { group.cancelAll() }
            for await case let reason? in group { return reason }
            preconditionFailure("the streams of reasons do not end")
        }
    }
}

/// Why a daemon stops.
private struct StopReason {
    /// The signal, or the code of the error.
    let name: String
    /// The error because of which the database must not be used any more.
    var error: StoreError?
}
