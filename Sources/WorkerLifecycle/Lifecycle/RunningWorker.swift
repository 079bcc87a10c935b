import AccountAPI
import Clocks
import HTTPClient
import Notices
import Observability
import PostgresStore
import RefreshEngine
import Store
import WorkerConfiguration

/// The running parts and their loops.
struct RunningWorker: Sendable {
    /// The interval at which the HTTP client's thread is checked for the watchdog.
    private static let glance: Duration = .seconds(2)
    /// The time for the steps after the engine's stop; the unit's TimeoutStopSec has room for both.
    private static let timeToClose: Duration = .seconds(5)
    private static let reserveInterval: Duration = .seconds(30)
    /// Successors of sessions are kept for seconds, so the sweep must not be much slower.
    private static let sweepInterval: Duration = .seconds(5)

    let context: CommandContext
    let engine: RefreshEngine
    let store: any AccountStore
    let vault: TokenVault
    let spill: ResultSpillFile
    let http: HTTPClient
    let metrics: MetricsLog
    let writer: LineWriter
    let counters: IntervalCounters
    let presence: WorkerHeartbeat
    let notifier: SystemdNotifier
    let pulse: LoopHeartbeats
    let listeners: HTTPListeners
    let database: DatabaseReadiness
    /// Delivers notices to the backend; `nil` if they are not configured.
    let notices: NoticeDispatcher?

    func work(until signals: SignalStream) async -> ExitCode {
        let started = context.time.sinceBoot
        let loops = Task { await runLoops() }
        listeners.phase.enter(.serving)
        tell(.ready, .status("refreshing"))
        let reason = await answer(signals)

        tell(.stopping, .status("finishing what is in flight"))
        metrics.record(StoppingEvent(reason: reason.name, inFlight: await engine.inFlight))
        let deadline = context.configuration.stopDeadline
        // Routes may wait for a refresh, so they drain while the engine completes its requests in flight.
        async let drained: Void = listeners.drain(within: deadline)
        let unstored = await engine.stop(within: deadline)
        await drained
        await TimeLimit.wait(atMost: Self.timeToClose, by: context.time) { await close(loops) }
        http.shutDown()
        metrics.record(StoppedEvent(uptime: context.time.sinceBoot - started))
        _ = await writer.flush()
        context.tell(unstored, in: spill)
        if case .unusable(let error) = reason {
            context.diagnostics.error("stopped: the database must not be used any more", ["error": error.message])
            return .configuration
        }
        guard unstored == UnstoredResults() else { return .inputOutput }
        context.diagnostics.notice("stopped")
        return .success
    }

    private func close(_ loops: Task<Void, Never>) async {
        await listeners.stop(within: .seconds(1))
        loops.cancel()
        // If the store fails, each of these would only wait for the same failure.
        if await !engine.isStoreFailing {
            await loops.value
            await engine.recordClock()
            await presence.leave()
        }
        await store.close()
    }

    /// The reason why a worker stops.
    private enum StopReason: Sendable {
        case signal(SignalPolicy.Signal)
        case unusable(StoreError)

        var name: String {
            switch self {
            case .signal(let signal): signal.name
            case .unusable(let error): error.code.rawValue
            }
        }
    }

    /// Reloads on SIGHUP; returns the first reason to stop.
    private func answer(_ signals: SignalStream) async -> StopReason {
        let (events, event) = AsyncStream.makeStream(of: StopReason.self)
        let sources = [
            Task { for await signal in signals.signals { event.yield(.signal(signal)) } },
            Task { for await error in engine.useEnds { event.yield(.unusable(error)) } },
        ]
        defer { for source in sources { source.cancel() } }
        for await reason in events {
            guard case .signal(.hangUp) = reason else { return reason }
            tell(.reloading(monotonicMicroseconds: MonotonicClock.microseconds))
            await reload()
            tell(.ready)
        }
        preconditionFailure("the stream of reasons does not end")
    }

    private func reload() async {
        writer.reopen()
        do {
            let pending = try await reloadConfiguration()
            if pending.isEmpty {
                context.diagnostics.notice("reloaded")
            } else {
                let names = pending.joined(separator: ", ")
                context.diagnostics.warning("reloaded; these settings need a restart", ["settings": names])
            }
        } catch {
            context.diagnostics.error(
                "not reloaded, everything stays as it was",
                ["error": CommandFailure(error).message]
            )
        }
    }

    // MARK: Loops

    private func runLoops() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await engine.run { pulse.beat(.scan) } }
            group.addTask {
                await PeriodicTask.beat(every: await engine.leaseRenewalInterval, by: context.time) {
                    await engine.renewLeases()
                }
            }
            group.addTask { await presence.run(by: context.time) { pulse.beat(.store) } }
            group.addTask {
                await PeriodicTask.beat(every: WorkerHeartbeat.interval, by: context.time) {
                    await engine.recordClock()
                }
            }
            group.addTask { await watchHTTP() }
            group.addTask { await database.run() }
            group.addTask { await keepReserve() }
            group.addTask { await sweep() }
            group.addTask { await listeners.watchCertificate() }
            if let server = store as? PostgresStore {
                // Changes by other workers' apps. The scan would find them too, but later.
                group.addTask { for await _ in server.changes() { await engine.storeChanged() } }
            }
            if let notices {
                group.addTask { await deliver(notices) }
            }
            group.addTask { await summarise() }
            if let interval = notifier.watchdogInterval {
                group.addTask { await feedWatchdog(interval) }
            }
        }
    }

    /// Keeps disk space reserved for results that the database does not accept.
    private func keepReserve() async {
        await PeriodicTask.beat(every: Self.reserveInterval, by: context.time) {
            guard await !engine.isStoreFailing else { return }
            await context.keepReserve(of: spill)
        }
    }

    /// Reports that the HTTP client's thread is alive when its count of rounds has increased.
    private func watchHTTP() async {
        var rounds = -1
        await PeriodicTask.beat(every: Self.glance, by: context.time) {
            let current = http.counters.rounds
            if current != rounds { pulse.beat(.http) }
            rounds = current
        }
    }

    private func feedWatchdog(_ interval: Duration) async {
        let watchdog = Watchdog(interval: interval, pulse: pulse, time: context.time)
        var former = Watchdog.Verdict.feed
        await PeriodicTask.beat(every: watchdog.feedingPeriod, by: context.time) {
            let verdict = watchdog.verdict()
            switch verdict {
            case .feed: tell(.watchdog)
            case .withhold(let stalled) where verdict != former:
                let names = stalled.map(\.rawValue).joined(separator: ", ")
                context.diagnostics.error("the watchdog is not fed: a loop does not turn", ["loops": names])
            case .withhold: break
            }
            former = verdict
        }
    }

    /// Marks tokens of an older version's database, then removes expired records, periodically.
    private func sweep() async {
        await PeriodicTask.beat(every: Self.sweepInterval, by: context.time) {
            // One unreadable row must not stop the removal of expired records.
            do {
                _ = try await TokenMarking.markTokens(store: store, vault: vault)
            } catch {
                context.diagnostics.debug("marking", ["error": "\(error)"])
            }
            do {
                while try await store.sweep(at: context.time.now).mayHaveMore {}
            } catch {
                context.diagnostics.debug("sweep", ["error": "\(error)"])
            }
        }
    }

    private func deliver(_ notices: NoticeDispatcher) async {
        await PeriodicTask.beat(every: .seconds(1), by: context.time) {
            do {
                try await notices.deliverDue()
            } catch {
                context.diagnostics.debug("notices", ["error": "\(error)"])
            }
        }
        do {
            try await notices.stop()
        } catch {
            context.diagnostics.debug("notices", ["error": "\(error)"])
        }
    }

    private func summarise() async {
        var former = http.counters
        await PeriodicTask.beat(every: context.configuration.summaryInterval, by: context.time, immediately: false) {
            let current = http.counters
            let now = context.time.now
            do {
                let census = try await store.census(at: now)
                metrics.record(
                    SummaryEvent(
                        counts: counters.drain(),
                        inFlight: await engine.inFlight,
                        due: await engine.waiting + census.due,
                        overdue: census.due,
                        oldestOverdue: census.oldestDueAt.map { now - $0 } ?? .zero,
                        expiring: census.refreshTokensEnding + census.idle,
                        droppedLines: metrics.droppedLines,
                        newConnections: current.newConnections - former.newConnections,
                        reusedConnections: current.reusedConnections - former.reusedConnections,
                        grants: SummaryEvent.GrantCounts(census)
                    )
                )
                tell(.status(census.sentence(at: now)))
            } catch {
                context.diagnostics.debug("summary", ["error": "\(error)"])
            }
            former = current
        }
    }

    private func tell(_ messages: NotifyMessage...) {
        for message in messages {
            do {
                try notifier.send(message)
            } catch {
                context.diagnostics.debug("systemd", ["error": "\(error)"])
            }
        }
    }
}

extension SummaryEvent.GrantCounts {
    init(_ census: Census) {
        self.init(
            active: census.byState[.active] ?? 0,
            retrying: census.byState[.retrying] ?? 0,
            suspended: census.byState[.suspended] ?? 0,
            reauthRequired: census.byState[.reauthRequired] ?? 0,
            disconnected: census.byState[.disconnected] ?? 0
        )
    }
}
