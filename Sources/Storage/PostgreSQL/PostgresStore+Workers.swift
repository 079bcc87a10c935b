import Base
private import Crypto

extension PostgresQuery {
    fileprivate static let upsertWorker = PostgresQuery(
        "report worker",
        """
        INSERT INTO refresh_worker.workers (worker_id, sealing_key, keys, is_refreshing, heartbeat)
        VALUES ($1, $2, $3, $4, \(now(unless: 5)))
        ON CONFLICT (worker_id) DO UPDATE SET sealing_key = excluded.sealing_key, keys = excluded.keys,
            is_refreshing = excluded.is_refreshing, heartbeat = excluded.heartbeat
        """
    )
    /// The condition of a live worker's heartbeat; one in the future comes from a clock that has been set back since.
    ///
    /// A live worker reports again within seconds, and a dead one must not count as live for as long as the step was.
    private static let isLive = "heartbeat BETWEEN \(now(unless: 1)) - $2 AND \(now(unless: 1)) + $2"

    /// Locked rows belong to workers that are reporting at this time, so they are not dead.
    fileprivate static let removeDeadWorkers = PostgresQuery(
        "remove dead workers",
        """
        DELETE FROM refresh_worker.workers WHERE worker_id IN (
            SELECT worker_id FROM refresh_worker.workers WHERE NOT (\(isLive))
            FOR UPDATE SKIP LOCKED
        )
        """
    )
    fileprivate static let liveWorkers = PostgresQuery(
        "live workers",
        """
        SELECT worker_id, sealing_key, keys, is_refreshing FROM refresh_worker.workers
        WHERE \(isLive) ORDER BY worker_id
        """
    )
    fileprivate static let removeWorkerByID = PostgresQuery(
        "remove worker",
        "DELETE FROM refresh_worker.workers WHERE worker_id = $1"
    )
    static let readMeta = PostgresQuery("read meta", "SELECT value FROM refresh_worker.meta WHERE key = $1")
    fileprivate static let addMeta = PostgresQuery(
        "add meta",
        "INSERT INTO refresh_worker.meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING"
    )
    fileprivate static let replaceMeta = PostgresQuery(
        "replace meta",
        "UPDATE refresh_worker.meta SET value = $2 WHERE key = $1 AND value = $3"
    )
    static let writeMeta = PostgresQuery(
        "write meta",
        "INSERT INTO refresh_worker.meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2"
    )
}

extension PostgresStore {
    package func report(_ worker: WorkerReport) async throws -> [WorkerReport] {
        hostSurvey.surveyIfDue(connector)
        do {
            return try await store(worker)
        } catch  where error.code == .moved {
            try await removeWorker(worker.id)
            throw error
        }
    }

    private func store(_ worker: WorkerReport) async throws(StoreError) -> [WorkerReport] {
        let unrecorded = newestServer.unrecorded
        let reports = try await leasing.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            batch.add(.upsertWorker) {
                $0.bind(worker.id)
                $0.bind(worker.sealingKeyID.description)
                $0.bind(worker.keyIDs.map(\.description).joined(separator: " "))
                $0.bind(worker.isRefreshing)
                $0.bind(leaseClock?.sinceBoot.milliseconds)
            }
            batch.add(.removeDeadWorkers, bind: bindLiveness)
            let position = batch.add(.liveWorkers, bind: bindLiveness)
            batch.add(.clock)
            if let unrecorded {
                batch.add(.recordServer) {
                    $0.bind(unrecorded.system)
                    $0.bind(unrecorded.timeline)
                }
            }
            return try commit(batch, isRepeatable: true, on: connection, until: deadline)[position]
                .rows(WorkerReport.read)
        }
        if let unrecorded { newestServer.markRecorded(unrecorded) }
        return reports
    }

    package func liveWorkers() async throws -> [WorkerReport] {
        try await reader.rows(.liveWorkers, bind: { [self] in bindLiveness(&$0) }, read: WorkerReport.read)
    }

    package func removeWorker(_ id: String) async throws {
        try await leasing.run { [self] connection, deadline throws(StatementFailure) in
            var batch = StatementBatch(until: deadline)
            batch.add(.removeWorkerByID) { $0.bind(id) }
            _ = try commit(batch, isRepeatable: true, on: connection, until: deadline)
        }
    }

    package func replaceNote(_ name: String, _ former: String?, with text: String) async throws -> Bool {
        try await leasing.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            let position = batch.add(former == nil ? .addMeta : .replaceMeta) {
                $0.bind(name)
                $0.bind(text)
                if let former { $0.bind(former) }
            }
            return try commit(batch, on: connection, until: deadline)[position].changedRows == 1
        }
    }

    private static let clockReadingKey = "clock_reading"

    package func clockReading() async throws -> ClockReading? {
        try await note(Self.clockReadingKey).flatMap { ClockReading(stored: $0) }
    }

    package func record(_ reading: ClockReading) async throws {
        try await leasing.run { [self] connection, deadline throws(StatementFailure) in
            var batch = changes(until: deadline, on: connection)
            batch.add(.writeMeta) {
                $0.bind(Self.clockReadingKey)
                $0.bind(reading.stored)
            }
            _ = try commit(batch, on: connection, until: deadline)
        }
    }

    private func bindLiveness(_ parameters: inout Parameters) {
        parameters.bind(leaseClock?.sinceBoot.milliseconds)
        parameters.bind(WorkerReport.lifetime.wholeMilliseconds)
    }
}

extension WorkerReport {
    fileprivate static func read(_ row: inout PostgresRow) throws(StatementFailure) -> WorkerReport {
        let id = row.text()
        let sealingKey = KeyID(row.text())
        let keys = row.text().split(separator: " ").compactMap { KeyID(String($0)) }
        guard let sealingKey else {
            throw StatementFailure(StoreError(damagedRow: "The report of worker \(id)"))
        }
        return WorkerReport(id: id, keyIDs: keys, sealingKeyID: sealingKey, isRefreshing: row.flag())
    }
}
