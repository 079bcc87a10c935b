import Base
import HTTPClient
import Scheduler
import Status
import Storage
import Telemetry

extension Worker {
    /// The interval at which the HTTP client's thread is checked for the watchdog.
    private static let httpCheckInterval: Duration = .seconds(2)
    private static let reserveInterval: Duration = .seconds(30)
    /// Successors of sessions are kept for seconds, so the clean-up must not be much slower.
    private static let cleanUpInterval: Duration = .seconds(5)

    static let tallyInterval: Duration = .seconds(300)
    private static let expiryInterval: Duration = .seconds(60)
    /// The retention is in days.
    static let forgettingInterval: Duration = .seconds(86_400)
    /// A clock that was wrong when the machine started is usually set by then.
    static let firstForgetting: Duration = .seconds(3600)

    /// The loops of every worker, also of a single pass.
    var loops: [BackgroundLoop] {
        [
            { await heartbeat.run(by: context.time) { loopHeartbeats.record(.store) } },
            {
                await context.time.repeat(every: await engine.leaseRenewalInterval) {
                    await engine.renewLeases()
                }
            },
            {
                await context.time.repeat(every: RefreshEngine.clockRecordInterval) {
                    await engine.recordClock()
                }
            },
            { await context.commandedKeyRing?.updateRepeatedly(for: heartbeat.ring) },
        ]
    }

    /// The loops that a daemon adds.
    var daemonLoops: [BackgroundLoop] {
        var loops: [BackgroundLoop] = [
            { await engine.run { loopHeartbeats.record(.scan) } },
            monitorHTTP, status.database.run, keepReserveRepeatedly, cleanUp, compareTally, summarise,
            { await listeners?.internalListener?.certificate?.checkRepeatedly() },
        ]
        if listeners?.internalListener != nil || exporters.metrics != nil { loops.append(status.run) }
        loops += telemetryLoops
        if let server = store as? PostgresStore {
            // Changes by other workers' apps. The scan would find them too, but later.
            loops.append { for await _ in server.changes() { await engine.storeChanged() } }
        }
        if let notices {
            loops.append { await deliver(notices) }
            loops.append { await announceExpiring(notices) }
        }
        if let retention = context.configuration.forgetEndedAfter { loops.append { await forget(after: retention) } }
        if let interval = notifier.watchdogInterval { loops.append { await feedWatchdog(interval) } }
        return loops
    }

    /// Keeps disk space reserved for results that the database does not accept.
    private func keepReserveRepeatedly() async {
        await context.time.repeat(every: Self.reserveInterval) {
            guard await !engine.isStoreFailing else { return }
            await keepReserve()
        }
    }

    /// Reserves the disk space.
    ///
    /// A failure does not stop the worker.
    func keepReserve() async {
        await context.diagnostics.attempt("reserve") { try await spill.keepReserve() }
    }

    /// Reports that the HTTP client's thread is alive when its count of rounds has increased.
    private func monitorHTTP() async {
        var rounds = -1
        await context.time.repeat(every: Self.httpCheckInterval) {
            let current = http.counters.rounds
            if current != rounds { loopHeartbeats.record(.http) }
            rounds = current
        }
    }

    private func feedWatchdog(_ interval: Duration) async {
        var previous: [LoopHeartbeats.Loop] = []
        await context.time.repeat(every: LoopHeartbeats.feedingPeriod(interval)) {
            let stalled = loopHeartbeats.stalled(within: interval)
            if stalled.isEmpty {
                notify(.watchdog)
            } else if stalled != previous {
                let names = stalled.map(\.rawValue).joined(separator: ", ")
                context.diagnostics.error("the watchdog is not fed: a loop is stalled", ["loops": names])
            }
            previous = stalled
        }
    }

    /// Removes expired records periodically.
    private func cleanUp() async {
        await context.time.repeat(every: Self.cleanUpInterval) {
            await context.diagnostics.attempt("clean-up") {
                let end = try await store.advanceDeletionClock(by: context.time).now
                while try await store.removeExpired(by: end, at: context.time.now).mayHaveMore {}
            }
        }
    }

    /// Raises an alarm while grants are missing that this program did not remove.
    private func compareTally() async {
        await context.time.repeat(every: Self.tallyInterval) {
            await context.diagnostics.attempt("tally of grants") {
                if let problem = try await store.grantRowProblem() {
                    log.incident(.rowsLost(problem))
                } else {
                    log.end([.databaseRowsLost])
                }
            }
        }
    }

    private func deliver(_ notices: NoticeDispatcher) async {
        await context.time.repeat(every: .seconds(1)) {
            await context.diagnostics.attempt("notices") { try await notices.deliverDue() }
        }
        await context.diagnostics.attempt("notices") { try await notices.stop() }
    }

    private func announceExpiring(_ notices: NoticeDispatcher) async {
        await context.time.repeat(every: Self.expiryInterval) {
            await context.diagnostics.attempt("expiring tokens") { try await notices.announceExpiring() }
        }
    }

    /// Forgets the grants that ended long ago.
    func forget(after retention: Duration) async {
        do {
            try await context.time.sleep(for: Self.firstForgetting)
        } catch {
            return
        }
        await context.time.repeat(every: Self.forgettingInterval) {
            do {
                let end = try await store.advanceDeletionClock(by: context.time).now
                try await store.forgetGrants(endedBefore: end - retention, at: context.time.now) { page in
                    context.diagnostics.notice("grants that ended long ago are forgotten", ["grants": "\(page.count)"])
                }
            } catch {
                context.diagnostics.warning("ended grants are not forgotten", ["error": "\(error)"])
            }
        }
    }
}
