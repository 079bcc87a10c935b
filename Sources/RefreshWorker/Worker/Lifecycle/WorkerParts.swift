import Base
import HTTPClient
import Scheduler
import Status
import Storage
import Telemetry

/// The opened parts of a worker, whether a daemon or a pass.
struct WorkerParts: Sendable {
    /// The time for the steps after the engine's stop. The unit's TimeoutStopSec has room for both.
    static let timeToClose: Duration = .seconds(5)
    /// The part of ``timeToClose`` in which services can end.
    private static let timeToEndServices: Duration = .seconds(2)

    let context: CommandContext
    let store: any Store
    let vault: TokenVault
    /// The client for refreshes, revocations and codes.
    let http: HTTPClient
    /// Writes the lines of the metrics log.
    let writer: LineWriter
    let metrics: MetricsLog
    let counters: IntervalCounters
    let log: EngineLog
    let spill: ResultSpillFile
    let engine: RefreshEngine
    let heartbeat: WorkerHeartbeat
    /// Delivers notices to the backend, or is `nil` if they are not configured.
    let notices: NoticeDispatcher?
    let database: DatabaseReadiness
    let status: LiveStatus
    let loopHeartbeats: LoopHeartbeats
    let notifier: SystemdNotifier
    /// `nil` in a pass, and in a daemon until they are opened.
    private(set) var listeners: HTTPListeners?

    /// Opens every part except the listeners, and runs nothing yet.
    init(
        _ context: CommandContext,
        store: any Store,
        vault: TokenVault,
        notifier: SystemdNotifier = SystemdNotifier(environment: [:], processID: ProcessSetup.id)
    ) throws {
        self.context = context
        self.store = store
        self.vault = vault
        self.notifier = notifier
        http = try context.openHTTP()
        writer = try context.openMetricsWriter()
        metrics = MetricsLog(sink: writer, worker: context.workerName, time: context.time)
        counters = IntervalCounters(time: context.time)
        log = EngineLog(metrics: metrics, diagnostics: context.diagnostics, counters: counters, time: context.time)
        log.sample(oneOf: context.configuration.logSample)
        spill = context.openSpill(vault: vault)
        let clientSecrets = try CommandContext.clientSecrets(of: context.configuration)
        context.warn(about: clientSecrets)
        engine = context.openEngine(
            store: store,
            vault: vault,
            http: http,
            log: log,
            spill: spill,
            clientSecrets: clientSecrets
        )
        heartbeat = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: context.workerName,
            diagnostics: context.diagnostics,
            log: log,
            engine: engine
        )
        notices = try context.openNotices(store: store, log: log)
        database = DatabaseReadiness(store: store, time: context.time)
        status = LiveStatus(
            from: context.status(from: store),
            database: database,
            engine: engine,
            metrics: metrics,
            diagnostics: context.diagnostics,
            time: context.time
        )
        loopHeartbeats = LoopHeartbeats(time: context.time)
    }

    /// Starts listening.
    ///
    /// The first request needs a recent check of the database, and loops that count as running after a long wait for
    /// it.
    mutating func openListeners() async throws {
        await database.check()
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
        let running = start(services + daemonServices)
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
        context.report(unstored, in: spill)
        if let error = reason.error {
            context.diagnostics.error("stopped: the database must not be used any more", ["error": error.message])
            return .configuration
        }
        guard unstored == .none else { return .inputOutput }
        context.diagnostics.notice("stopped")
        return .success
    }

    /// Starts services, which run until ``stop(_:)``.
    func start(_ services: [BackgroundLoop]) -> Task<Void, Never> {
        Task {
            await withDiscardingTaskGroup { group in
                for service in services { group.addTask { await service() } }
            }
        }
    }

    /// Stops everything that the start has opened, in reverse order, after the engine.
    func stop(_ services: Task<Void, Never>) async {
        await context.time.wait(atMost: Self.timeToClose) {
            await listeners?.stop(within: .seconds(1))
            services.cancel()
            // If the store fails, each of these would only wait for the same failure.
            if await !engine.isStoreFailing {
                // A notice whose receiver keeps the client's thread busy does not end.
                await context.time.wait(atMost: Self.timeToEndServices) { await services.value }
                await engine.recordClock()
                await heartbeat.leave(at: context.time.now)
            }
            await store.close()
        }
        http.shutDown()
    }

    private struct StopReason {
        /// The signal, or the code of the error.
        let name: String
        /// The error because of which the database must not be used any more.
        var error: StoreError?
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

    func notify(_ messages: NotifyMessage...) { notifier.notify(messages, diagnostics: context.diagnostics) }
}
