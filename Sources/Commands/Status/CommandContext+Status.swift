import Base
import Crypto
import Scheduler
package import Status
package import Storage
import Telemetry
package import Worker

/// `status`: reports on everything that is stored, with or without a running worker.
extension CommandContext {
    package func showStatus(asJSON isJSON: Bool) async throws -> ExitCode {
        let report: StatusReport
        do {
            report = try await statusReport()
        } catch {
            // A monitor must not take a status that is unknown for a good or a bad one.
            let failure = CommandFailure(error)
            throw CommandFailure(.cannotTell, failure.message)
        }
        if isJSON {
            Output.standard.line(report.json.bytes)
        } else {
            Output.standard.write(report.text)
        }
        return report.judgement.isWell ? .success : .concerns
    }

    /// The functions with which a daemon reports its status.
    package var statusReporter: StatusReporter {
        StatusReporter(
            json: { store, process in
                try await statusReport(from: store, of: process).json.text
            },
            observe: { store in try await statusReport(from: store, includesSlowParts: false).observations }
        )
    }

    func statusReport() async throws -> StatusReport {
        var report = try await withExistingStore(for: .reading) { store in try await statusReport(from: store) }
        // Closing the connections has written the log back into the file. The file may be opened only now: see
        // `FileStatus`.
        if let path = configuration.database.file {
            let header = try await BlockingCallQueue.files.run { DatabaseHeader.read(path) }
            report.database.schema = header.flatMap { $0.schema > 0 ? $0.schema : nil }
        }
        return report
    }

    /// Returns the report from an open store, without the database's header, which needs a closed one.
    ///
    /// `includesSlowParts` is `false` for a report that is made often: it leaves out the number of tokens for each key,
    /// whose count takes seconds with ten million grants, and the facts of a server, which need another connection.
    package func statusReport(
        from store: any AccountStore,
        of process: ProcessObservations = ProcessObservations(),
        includesSlowParts: Bool = true
    ) async throws -> StatusReport {
        let now = time.now
        let leaseTime = try await store.leaseTime()
        // The health of a client id stays when its last grant has moved or ended.
        let inUse = Set(try await store.clientsWithDueTimes())
        let configured = Set(configuration.clientIDs)
        let stored = try await store.clientHealth().filter { inUse.union(configured).contains($0.key) }
        let clientIDs = configured.union(stored.keys).sorted()
        var process = process
        let published = try await PublishedAlarms.read(from: store, at: now)
        process.alarms += published.filter { alarm in
            !process.alarms.contains { $0.kind == alarm.kind && $0.client == alarm.client }
        }
        return StatusReport(
            at: now,
            statistics: try await store.grantStatistics(at: now),
            clients: clientIDs.map { id in
                StatusReport.Client(
                    id: id,
                    health: ClientHealth(stored: stored[id], epoch: leaseTime.epoch),
                    maxRate: configuration.maxRate,
                    at: leaseTime.instant,
                    wallClock: now
                )
            },
            clientsInUse: inUse,
            workers: try await store.liveWorkers(),
            lastPassAt: try await LastPass.read(from: store),
            keysInUse: includesSlowParts ? try await store.keysInUse() : [:],
            keyRing: readableKeyRing(),
            database: try await databaseFacts(asksServer: includesSlowParts),
            spilledFiles: await spilledFiles(),
            pendingNotices: configuration.noticeURL == nil ? nil : try await store.pendingNotices(),
            securityEvents: configuration.publicListener == nil ? nil : try await ReceivedSecurityEvents(from: store),
            process: process
        )
    }

    /// Returns the facts about the database; those about a server need a connection of their own.
    private func databaseFacts(asksServer: Bool) async throws -> StatusReport.Database {
        let name = configuration.database.description
        switch configuration.database {
        case .file(let path):
            return StatusReport.Database(
                path: name,
                bytes: try FileStatus.of(path)?.size ?? 0,
                freeSpace: try FileStatus.freeSpace(at: FileStatus.folder(of: path)),
                faultyLibrary: SQLiteLibrary.hasLogResetBug ? SQLiteLibrary.version : nil
            )
        case .server(let address):
            guard asksServer else { return StatusReport.Database(path: name, bytes: 0) }
            let facts = try await ServerFacts.read(address, time: time)
            return StatusReport.Database(path: name, bytes: facts.bytes, schema: facts.schema)
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

    /// Returns the ring's keys, or `nil`: the rest of the report is useful without them and says that they are missing.
    private func readableKeyRing() -> KeyRingSummary? {
        do {
            return KeyRingSummary(try openVault().ring.current)
        } catch {
            diagnostics.debug("the key ring cannot be read", ["error": "\(error)"])
            return nil
        }
    }
}
