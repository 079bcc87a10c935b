import Base
import Crypto
import Scheduler
import Status
import Storage
import Telemetry

/// Makes the snapshot that the commands and the listeners show.
extension CommandContext {
    /// Returns the snapshot from an open store, without the schema of a SQLite file, which needs a closed one.
    ///
    /// `includesSlowParts` is `false` for a snapshot that is made often: it leaves out the number of tokens for each
    /// key and the number of rows, whose count takes seconds with ten million grants, and the facts of a server, which
    /// need another connection.
    func statusSnapshot(
        from store: any Store,
        of process: ProcessStatus = ProcessStatus(),
        includesSlowParts: Bool = true
    ) async throws -> StatusSnapshot {
        var snapshot = StatusSnapshot(at: time.now)
        let workers = try await store.liveWorkers()
        snapshot.workers = workers
        snapshot.process = process
        snapshot.process.add(try await PublishedAlarms.read(from: store, living: workers, at: snapshot.at))
        snapshot.oldestTransaction = try await store.oldestTransaction()
        snapshot.activity = try await RecentActivity.read(from: store)
        snapshot.lastPassAt = try await NotedTime.lastPass.read(from: store)
        snapshot.deletionClock = try await store.deletionClock(by: time)
        snapshot.movedTo = try await store.movedTo
        let inUse = try await count(.grants, in: &snapshot) { Set(try await store.clientsWithDueTimes()) }
        try await addClients(inUse: inUse, to: &snapshot, from: store)
        if inUse != nil {
            let now = snapshot.at
            let grants = try await count(.grants, in: &snapshot) { try await store.grantStatistics(at: now) }
            snapshot.grants = grants ?? .empty
        }
        snapshot.incidents = store.pendingIncidents()
        if includesSlowParts {
            snapshot.keysInUse = try await count(.tokens, in: &snapshot) { try await store.keysInUse() } ?? [:]
            let problem = try await count(.rows, in: &snapshot) { try await store.grantRowProblem() }
            if let problem = problem ?? nil { snapshot.incidents.append(.rowsLost(problem)) }
        }
        addKeyRing(to: &snapshot)
        try await addDatabase(to: &snapshot, asksServer: includesSlowParts)
        snapshot.spilledFiles = await spilledFiles()
        // Another configuration can be that of another installation.
        if configuration.configurationFile.map(Installation.isFile) == true {
            snapshot.backups = try await BlockingCallQueue.files.run { NightlyBackups.find() }
        }
        if configuration.noticeURL != nil { snapshot.notices = try await store.pendingNotices() }
        if configuration.publicListener != nil {
            snapshot.receivesSecurityEvents = true
            snapshot.lastSecurityEventAt = try await NotedTime.lastSecurityEvent.read(from: store)
        }
        return snapshot
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

    /// Adds the client ids that are configured or have grants.
    ///
    /// The health of a client id stays when its last grant has moved or ended. If `inUse` is unknown, all are shown.
    private func addClients(
        inUse: Set<String>?,
        to snapshot: inout StatusSnapshot,
        from store: any Store
    ) async throws {
        let leaseTime = try await store.leaseTime()
        let configured = Set(configuration.allClientIDs)
        let stored = try await store.clientHealth().filter { health in
            inUse.map { $0.union(configured).contains(health.key) } ?? true
        }
        snapshot.clients = configured.union(stored.keys).sorted().map { id in
            ClientStatus(
                id: id,
                stored: stored[id],
                maxRate: configuration.maxRate,
                at: leaseTime,
                wallClock: snapshot.at
            )
        }
        snapshot.clientsInUse = inUse
    }

    /// Adds the ring's keys.
    ///
    /// The rest of the snapshot is useful without them.
    private func addKeyRing(to snapshot: inout StatusSnapshot) {
        do {
            let ring = try openVault().ring.current
            snapshot.ringKeys = ring.keys.map(\.id)
            snapshot.sealingKey = ring.sealingKeyID
            snapshot.pendingKey = ring.keys.first { $0.role == .pending }?.id
        } catch {
            diagnostics.debug("the key ring cannot be read", ["error": "\(error)"])
            snapshot.isKeyRingUnreadable = true
        }
    }

    /// Adds the facts about the database.
    ///
    /// Those about a server need a connection of their own.
    private func addDatabase(to snapshot: inout StatusSnapshot, asksServer: Bool) async throws {
        snapshot.database = configuration.database.description
        switch configuration.database {
        case .file(let path):
            snapshot.databaseBytes = try FileStatus.of(path)?.size ?? 0
            snapshot.freeSpace = try Folder.freeSpace(in: path.parentFolder)
        case .server(let address):
            guard asksServer else { return }
            let facts = try await ServerFacts.read(address, time: time)
            (snapshot.databaseBytes, snapshot.schema) = (facts.bytes, facts.schema)
        }
    }

    private func spilledFiles() async -> [SpilledFile]? {
        let location = spillLocation(of: configuration.database)
        do {
            return try await BlockingCallQueue.files.run { try SpilledFile.list(in: location) }
        } catch {
            diagnostics.warning("the spill files cannot be listed", ["folder": location.folder, "error": "\(error)"])
            return nil
        }
    }
}

extension SpilledFile {
    /// Returns the spill files at a location and those that were set aside, in the order of their names.
    ///
    /// It locks none of them: a worker that is about to save results would take its own file for one in use.
    static func list(in location: SpillLocation) throws(SystemCallError) -> [SpilledFile] {
        let names = try Folder.names(in: location.folder).filter { location.isSpill($0) || location.isSetAside($0) }
        return names.compactMap { name in
            let path = "\(location.folder)/\(name)"
            // A missing file was recovered by another process.
            guard let writtenAt = writeTime(of: path) else { return nil }
            let (isSetAside, results) = (location.isSetAside(name), count(in: path))
            // Reserved disk space that is still empty.
            guard results != 0 || isSetAside else { return nil }
            return SpilledFile(path: path, isSetAside: isSetAside, writtenAt: writtenAt, results: results)
        }
    }

    private static func writeTime(of path: String) -> Timestamp? {
        do throws(SystemCallError) {
            return try FileStatus.of(path)?.modifiedAt
        } catch {
            return nil
        }
    }

    private static func count(in path: String) -> Int? {
        do throws(SystemCallError) {
            let file = try SpillFile.openIfThere(path, forReading: true)
            guard let bytes = try file?.read(limit: SpillFormat.maximumSize) else { return nil }
            let content = SpillFormat.read(bytes)
            return content.isDamaged && content.results.isEmpty ? nil : content.results.count
        } catch {
            return nil
        }
    }
}
