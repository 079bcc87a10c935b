import Base
private import Crypto

extension SQLiteQuery {
    static let upsertWorker = SQLiteQuery(
        "report worker",
        """
        INSERT INTO workers (worker_id, epoch, heartbeat, sealing_key, keys, is_refreshing)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (worker_id) DO UPDATE
        SET epoch = ?2, heartbeat = ?3, sealing_key = ?4, keys = ?5, is_refreshing = ?6
        """
    )
    static let removeDeadWorkers = SQLiteQuery(
        "remove dead workers",
        "DELETE FROM workers WHERE epoch <> ?1 OR heartbeat < ?2"
    )
    static let liveWorkers = SQLiteQuery(
        "live workers",
        """
        SELECT worker_id, sealing_key, keys, is_refreshing FROM workers
        WHERE epoch = ?1 AND heartbeat >= ?2 ORDER BY worker_id
        """
    )
    static let removeWorkerByID = SQLiteQuery("remove worker", "DELETE FROM workers WHERE worker_id = ?")

    static let readMeta = SQLiteQuery("read meta", "SELECT value FROM meta WHERE key = ?")
    static let writeMeta = SQLiteQuery(
        "write meta",
        "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2"
    )
}

extension SQLiteStore {
    package func report(_ worker: WorkerReport) async throws -> [WorkerReport] {
        try await writer.run { [self] connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                let time = leaseTimeNow
                try connection.run(.upsertWorker) { statement in
                    statement.bind(worker.id)
                    statement.bind(time.epoch)
                    statement.bind(time.instant.milliseconds)
                    statement.bind(worker.sealingKeyID.description)
                    statement.bind(worker.keyIDs.map(\.description).joined(separator: " "))
                    statement.bind(worker.isRefreshing)
                }
                try connection.run(.removeDeadWorkers) { $0.bindLiveness(at: time) }
                return try connection.liveWorkers(at: time)
            }
        }
    }

    package func liveWorkers() async throws -> [WorkerReport] {
        try await reader.run { [self] connection throws(StoreError) in
            try connection.liveWorkers(at: leaseTimeNow)
        }
    }

    package func removeWorker(_ id: String) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write(evenIfMoved: true) { () throws(StoreError) in
                try connection.run(.removeWorkerByID) { $0.bind(id) }
            }
        }
    }

    package func note(_ name: String) async throws -> String? {
        try await reader.run { connection throws(StoreError) in try connection.note(name) }
    }

    package func replaceNote(_ name: String, _ former: String?, with text: String) async throws -> Bool {
        try await writer.run { connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                guard try connection.note(name) == former else { return false }
                try connection.run(.writeMeta) { statement in
                    statement.bind(name)
                    statement.bind(text)
                }
                return true
            }
        }
    }

    private static let clockReadingKey = "clock_reading"

    package func clockReading() async throws -> ClockReading? {
        try await note(Self.clockReadingKey).flatMap { ClockReading(stored: $0) }
    }

    package func record(_ reading: ClockReading) async throws {
        try await writer.run { connection throws(StoreError) in
            try connection.write { () throws(StoreError) in
                try connection.run(.writeMeta) { statement in
                    statement.bind(Self.clockReadingKey)
                    statement.bind(reading.stored)
                }
            }
        }
    }
}

extension SQLiteConnection {
    fileprivate func liveWorkers(at time: LeaseTime) throws(StoreError) -> [WorkerReport] {
        try rows(.liveWorkers, bind: { $0.bindLiveness(at: time) }) { (row: inout SQLiteRow) throws(StoreError) in
            let id = row.text()
            let sealingKey = KeyID(row.text())
            let keys = row.text().split(separator: " ").compactMap { KeyID(String($0)) }
            guard let sealingKey else {
                throw StoreError(damagedRow: "The report of worker \(id)")
            }
            return WorkerReport(id: id, keyIDs: keys, sealingKeyID: sealingKey, isRefreshing: row.integer() != 0)
        }
    }
}

extension Statement {
    /// Binds the boot of a live worker's report, and its earliest instant.
    func bindLiveness(at time: LeaseTime) {
        bind(time.epoch)
        bind(time.instant.milliseconds - WorkerReport.lifetime.wholeMilliseconds)
    }
}
