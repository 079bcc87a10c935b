package import Base
internal import Crypto
internal import Scheduler
package import Storage
package import Telemetry

/// The status of an installation, from its database, its settings and its files.
package struct InstallationStatus: StatusSource {
    private let store: any Store
    private let installation: any InstallationFacts
    private let time: any TimeSource
    private let diagnostics: DiagnosticLog

    package init(
        store: any Store,
        installation: any InstallationFacts,
        time: any TimeSource,
        diagnostics: DiagnosticLog
    ) {
        self.store = store
        self.installation = installation
        self.time = time
        self.diagnostics = diagnostics
    }

    /// Makes a snapshot, without the schema of a SQLite file, which needs a closed one.
    package func snapshot(of process: ProcessStatus, includesSlowParts: Bool) async throws -> StatusSnapshot {
        var snapshot = StatusSnapshot(at: time.now)
        try await addWorkers(and: process, to: &snapshot)
        try await addNotes(to: &snapshot)
        try await addGrants(to: &snapshot)
        snapshot.incidents = store.pendingIncidents()
        if includesSlowParts { try await addSlowCounts(to: &snapshot) }
        addKeyRing(to: &snapshot)
        try await addDatabase(to: &snapshot, asksServer: includesSlowParts)
        snapshot.spilledFiles = await installation.spilledFiles()
        snapshot.backups = try await installation.nightlyBackups()
        try await addDeliveries(to: &snapshot)
        return snapshot
    }

    private func addWorkers(and process: ProcessStatus, to snapshot: inout StatusSnapshot) async throws {
        let workers = try await store.liveWorkers()
        snapshot.workers = workers
        snapshot.process = process
        snapshot.process.add(try await PublishedAlarms.read(from: store, living: workers, at: snapshot.at))
    }

    private func addNotes(to snapshot: inout StatusSnapshot) async throws {
        snapshot.oldestTransaction = try await store.oldestTransaction()
        snapshot.activity = try await RecentActivity.read(from: store)
        snapshot.lastPassAt = try await NotedTime.lastPass.read(from: store)
        snapshot.deletionClock = try await store.deletionClock(by: time)
        snapshot.movedTo = try await store.movedTo
    }

    /// Adds the clients and the statistics of the grants.
    ///
    /// A database that did not find the clients in time is not asked for the statistics, which take longer.
    private func addGrants(to snapshot: inout StatusSnapshot) async throws {
        let inUse = try await count(.grants, in: &snapshot) { Set(try await store.clientsWithDueTimes()) }
        try await addClients(inUse: inUse, to: &snapshot)
        guard inUse != nil else { return }
        let now = snapshot.at
        let grants = try await count(.grants, in: &snapshot) { try await store.grantStatistics(at: now) }
        snapshot.grants = grants ?? .empty
    }

    /// Adds the client ids that are configured, or have a health and grants that are refreshed.
    ///
    /// The health of a client id stays when its last grant has moved or ended. If `inUse` is unknown, all are shown.
    private func addClients(inUse: Set<String>?, to snapshot: inout StatusSnapshot) async throws {
        let leaseTime = try await store.leaseTime()
        let configured = Set(installation.clientIDs)
        var stored = try await store.clientHealth()
        if let inUse { stored = stored.filter { inUse.union(configured).contains($0.key) } }
        snapshot.clients = configured.union(stored.keys).sorted().map { id in
            ClientStatus(
                id: id,
                stored: stored[id],
                maxRate: installation.maxRate,
                at: leaseTime,
                wallClock: snapshot.at
            )
        }
        snapshot.clientsInUse = inUse
    }

    private func addSlowCounts(to snapshot: inout StatusSnapshot) async throws {
        snapshot.keysInUse = try await count(.tokens, in: &snapshot) { try await store.keysInUse() } ?? [:]
        let comparison = try await count(.rows, in: &snapshot) { try await store.grantRowProblem() }
        if let comparison, let problem = comparison { snapshot.incidents.append(.rowsLost(problem)) }
    }

    /// Returns what a count says, or notes that the database did not finish it in time.
    private func count<Value>(
        _ count: StatusSnapshot.Count,
        in snapshot: inout StatusSnapshot,
        _ body: () async throws -> Value
    ) async throws -> Value? {
        do {
            return try await body()
        } catch let error as StoreError where error.isTimeout {
            diagnostics.debug("a count timed out", ["count": count.rawValue, "error": error.message])
            snapshot.timedOutCounts.insert(count)
            return nil
        }
    }

    /// Adds the ring's keys.
    ///
    /// The rest of the snapshot is useful without them.
    private func addKeyRing(to snapshot: inout StatusSnapshot) {
        do {
            let ring = try installation.readKeyRing()
            snapshot.ringKeys = ring.keys.map(\.id)
            snapshot.sealingKey = ring.sealingKeyID
            snapshot.pendingKey = ring.keys.first { $0.role == .pending }?.id
        } catch {
            diagnostics.debug("the key ring cannot be read", ["error": "\(error)"])
            snapshot.isKeyRingUnreadable = true
        }
    }

    private func addDatabase(to snapshot: inout StatusSnapshot, asksServer: Bool) async throws {
        let facts = try await installation.databaseFacts(asksServer: asksServer)
        snapshot.database = facts.location
        snapshot.databaseBytes = facts.bytes
        snapshot.schema = facts.schema
        snapshot.freeSpace = facts.freeSpace
    }

    /// Adds what the installation sends to the backend and receives from Google.
    private func addDeliveries(to snapshot: inout StatusSnapshot) async throws {
        if installation.deliversNotices { snapshot.notices = try await store.pendingNotices() }
        if installation.receivesSecurityEvents {
            snapshot.receivesSecurityEvents = true
            snapshot.lastSecurityEventAt = try await NotedTime.lastSecurityEvent.read(from: store)
        }
    }
}
