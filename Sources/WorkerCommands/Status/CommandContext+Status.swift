import Clocks
import JSON
import Observability
import PostgresStore
import RefreshEngine
import Secrets
package import Store
package import WorkerConfiguration
import WorkerLifecycle

/// `status`: reports on everything that is stored, with or without a running worker.
extension CommandContext {
    package func showStatus(asJSON isJSON: Bool) async throws -> ExitCode {
        let report = try await statusReport()
        if isJSON {
            Output.standard.line(report.json.bytes)
        } else {
            Output.standard.write(report.text)
        }
        return .success
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
    package func statusReport(from store: any AccountStore) async throws -> StatusReport {
        let now = time.now
        let leaseTime = try await store.leaseTime()
        let stored = try await store.clientHealth()
        let clientIDs = Set(configuration.clientIDs).union(stored.keys).sorted()
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
            workers: try await store.liveWorkers(),
            keysInUse: try await store.keysInUse(),
            keyRing: readableKeyRing(),
            database: try await databaseFacts,
            spilledFiles: await spilledFiles()
        )
    }

    private var databaseFacts: StatusReport.Database {
        get async throws {
            let name = configuration.database.description
            switch configuration.database {
            case .file(let path):
                return StatusReport.Database(path: name, bytes: try FileStatus.of(path)?.size ?? 0)
            case .server(let address):
                let facts = try await ServerFacts.read(address, time: time)
                return StatusReport.Database(path: name, bytes: facts.bytes, schema: facts.schema)
            }
        }
    }

    private func spilledFiles() async -> [SpilledFile] {
        let location = spillLocation(of: configuration.database)
        do {
            return try await BlockingCallQueue.files.run { try SpilledFile.list(in: location) }
        } catch {
            diagnostics.warning("the spill files cannot be listed", ["folder": location.folder, "error": "\(error)"])
            return []
        }
    }

    /// Returns the ring's keys, or `nil`: the rest of the report is useful without them and says that they are missing.
    private func readableKeyRing() -> KeyRingSummary? {
        do {
            return KeyRingSummary(try openVault().ring.current)
        } catch {
            diagnostics.info("the key ring cannot be read", ["error": "\(error)"])
            return nil
        }
    }
}
