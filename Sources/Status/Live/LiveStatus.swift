package import Base
package import Scheduler
internal import Storage
package import Telemetry

/// The status that a running worker shows: the last snapshot of the database, and what the worker knows since.
package struct LiveStatus: Sendable {
    /// The pause between two snapshots in the background: with their own time they are at most five seconds old.
    package static let interval: Duration = .seconds(2)
    /// The age of a snapshot above which it says nothing about now: reading the database hangs.
    package static let maximumAge: Duration = .seconds(30)
    /// The same for people, who take the page's heading for what is true now.
    private static let maximumAgeForPeople: Duration = .seconds(5)
    /// The age above which the counts of an earlier snapshot are worse than none.
    package static let maximumAgeOfCounts: Duration = .seconds(600)
    /// How long people wait for a newer snapshot.
    package static let waitOfPeople: Duration = .seconds(1)

    package let database: DatabaseReadiness
    private let source: any StatusSource
    private let engine: RefreshEngine
    private let metrics: MetricsLog
    private let diagnostics: DiagnosticLog
    private let time: any TimeSource
    private let snapshots: SnapshotCache

    package init(
        from source: any StatusSource,
        database: DatabaseReadiness,
        engine: RefreshEngine,
        metrics: MetricsLog,
        diagnostics: DiagnosticLog,
        time: any TimeSource
    ) {
        self.source = source
        self.database = database
        self.engine = engine
        self.metrics = metrics
        self.diagnostics = diagnostics
        self.time = time
        snapshots = SnapshotCache(lifetime: Self.interval, time: time) {
            try await source.snapshot(includesSlowParts: false)
        }
    }

    /// Observes the database until the task is cancelled, so that no request has to wait for it.
    package func run() async {
        var isFailing = false
        await time.repeat(every: Self.interval) {
            let error = await observe()
            if let error, !isFailing {
                diagnostics.warning("the status cannot be read from the database", ["error": "\(error)"])
            } else if error == nil, isFailing {
                diagnostics.notice("the status can be read again")
            }
            isFailing = error != nil
        }
    }

    /// Returns the error without which there would be a new snapshot.
    @discardableResult
    private func observe() async -> (any Error)? {
        do {
            _ = try await snapshots.freshSnapshot()
            return nil
        } catch {
            return error
        }
    }

    // MARK: The database

    /// Makes a snapshot with its slow parts.
    package func completeSnapshot() async throws -> StatusSnapshot {
        try await source.snapshot(of: await process(), includesSlowParts: true)
    }

    /// Returns a snapshot of the last two seconds. It waits for the database if there is none.
    package func freshSnapshot() async throws -> StatusSnapshot { try await snapshots.freshSnapshot() }

    /// Returns the last snapshot without waiting for the database, with the clients whose breaker this worker has seen
    /// opening since. Nobody should have to wait for the next snapshot to learn that nothing is sent any more.
    package func latestSnapshot() async -> StatusSnapshot? {
        guard var snapshot = await snapshots.latestSnapshot() else { return nil }
        for client in await engine.clientStatuses {
            guard let since = client.breakerSince, since >= snapshot.at else { continue }
            snapshot.clients.removeAll { $0.id == client.id }
            snapshot.clients.append(client)
        }
        snapshot.clients.sort { $0.id < $1.id }
        return snapshot
    }

    /// Returns a snapshot for people. It waits for the database only if the last one is old, and not for long.
    package func snapshotForPeople() async -> StatusSnapshot? {
        let snapshot = await latestSnapshot()
        guard database.problem == nil, isTooOldForPeople(snapshot) else { return snapshot }
        await time.wait(atMost: Self.waitOfPeople) { await observe() }
        return await latestSnapshot()
    }

    private func isTooOldForPeople(_ snapshot: StatusSnapshot?) -> Bool {
        guard let snapshot else { return true }
        return time.now - snapshot.at > Self.maximumAgeForPeople
    }

    // MARK: This worker

    /// Returns what this worker knows about itself now.
    package func process() async -> ProcessStatus {
        var process = ProcessStatus()
        process.isWorker = true
        process.alarms = engine.currentAlarms
        process.databaseProblem = await databaseProblem()
        process.resultsWaiting = await engine.failingToStoreFor
        process.isMetricsLogFailing = metrics.isFailing
        process.droppedLines = metrics.droppedLines
        return process
    }

    /// Returns the code of the database's problem, or `nil` without one. Claims can fail where the check does not, such
    /// as on a full disk.
    private func databaseProblem() async -> String? {
        if let problem = database.problem { return problem }
        if let failing = await engine.failingToClaimFor, failing > ProcessStatus.tolerableDelay {
            return "claims_failing"
        }
        return nil
    }

    // MARK: Findings

    /// Returns the findings about the process as it is now, and about the database as it was read last.
    ///
    /// They are about the process alone if the database cannot be used, or was not read for long. If there is none
    /// then, it returns `nil`, because it is unknown if all is well.
    package func findings(of process: ProcessStatus, and snapshot: StatusSnapshot?) -> [Finding]? {
        let now = time.now
        if let snapshot = usable(snapshot, upTo: Self.maximumAge) {
            return snapshot.with(process, at: now).findings
        }
        let own = StatusSnapshot(at: now).with(process, at: now).findings
        return own.isEmpty ? nil : own
    }

    /// Returns a snapshot from which people can be told what is true now, or `nil` without one.
    package func recentEnoughForPeople(_ snapshot: StatusSnapshot?) -> StatusSnapshot? {
        usable(snapshot, upTo: Self.maximumAgeForPeople)
    }

    private func usable(_ snapshot: StatusSnapshot?, upTo maximumAge: Duration) -> StatusSnapshot? {
        guard let snapshot, database.problem == nil else { return nil }
        return time.now - snapshot.at <= maximumAge ? snapshot : nil
    }
}
