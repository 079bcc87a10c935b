package import Base
package import Crypto

/// The report of a live worker about itself.
package struct WorkerReport: Hashable, Sendable {
    /// The age after which a report belongs to a dead worker.
    package static let lifetime: Duration = .seconds(30)

    package var id: String
    /// Every key with which it can open tokens.
    package var keyIDs: [KeyID]
    package var sealingKeyID: KeyID
    /// `true` if it sends refreshes: all such workers share the pace of a client id and the due grants.
    package var isRefreshing: Bool

    package init(id: String, keyIDs: [KeyID], sealingKeyID: KeyID, isRefreshing: Bool = false) {
        self.id = id
        self.keyIDs = keyIDs
        self.sealingKeyID = sealingKeyID
        self.isRefreshing = isRefreshing
    }
}

/// A reading of both clocks at one instant: the wall clock, which can be stepped, and the boot clock, which cannot.
package struct ClockReading: Hashable, Sendable {
    package var now: Timestamp
    package var sinceBoot: BootInstant
    /// The id of the boot that `sinceBoot` belongs to.
    package var bootID: String

    package init(now: Timestamp, sinceBoot: BootInstant, bootID: String) {
        self.now = now
        self.sinceBoot = sinceBoot
        self.bootID = bootID
    }

    /// The stored form: both clocks in milliseconds, and the id of the boot.
    package var stored: String { "\(now.milliseconds) \(sinceBoot.milliseconds) \(bootID)" }

    package init?(stored text: String) {
        let parts = text.split(separator: " ", maxSplits: 2)
        guard parts.count == 3, let wall = Int64(parts[0]), let boot = Int64(parts[1]) else { return nil }
        self.init(
            now: Timestamp(milliseconds: wall),
            sinceBoot: BootInstant(milliseconds: boot),
            bootID: String(parts[2])
        )
    }
}

extension SQLQuery {
    private static let isRecent = "epoch = $1 AND heartbeat >= $2"

    static let removeDeadWorkers = SQLQuery(
        "remove dead workers",
        sql: "DELETE FROM refresh_worker.workers WHERE NOT (\(isRecent))"
    )
    static let workers = Table<[SQLValue]>(
        "workers",
        [
            .init("worker_id", .text, "PRIMARY KEY"),
            .init("epoch", .text, "NOT NULL"),
            .init("heartbeat", .integer, "NOT NULL"),
            .init("sealing_key", .text, "NOT NULL"),
            .init("keys", .text, "NOT NULL"),
            .init("is_refreshing", .flag, "NOT NULL DEFAULT false"),
        ]
    )
    static let reportWorker = workers.put("report worker")
    /// A report in the future comes from a clock that has been set back since.
    ///
    /// A live worker reports again within seconds, and a dead one must not count as live for as long as the step was.
    /// Such a report is left out, and not removed: the process that reads might have stood still since it took the
    /// time.
    static let liveWorkers = workers.without("epoch", "heartbeat").select(
        "live workers",
        "WHERE \(isRecent) AND heartbeat <= $3 ORDER BY worker_id"
    )
    static let removeWorker = workers.delete("remove worker")

    /// Short texts by name.
    static let meta = Table<[SQLValue]>(
        "meta",
        [.init("key", .text, "PRIMARY KEY"), .init("value", .text, "NOT NULL")]
    )
    static let readMeta = meta.only(["value"]).select("read meta", "WHERE key = $1")
    static let addMeta = meta.insert("add meta")
    static let replaceMeta = meta.update("replace meta", where: "value = $3")
    static let writeMeta = meta.put("write meta")
    static let deleteMeta = meta.delete("delete meta")
    fileprivate static let deleteMetaIfSame = meta.delete("delete meta if it is the same", where: "value = $2")
}

extension SQLStatement {
    static func liveWorkers(at time: LeaseTime) -> SQLStatement {
        let now = time.instant.milliseconds
        let lifetime = WorkerReport.lifetime.wholeMilliseconds
        return SQLStatement(.liveWorkers, .text(time.epoch), .integer(now - lifetime), .integer(now + lifetime))
    }

    fileprivate static func removeDeadWorkers(at time: LeaseTime) -> SQLStatement {
        let oldest = time.instant.milliseconds - WorkerReport.lifetime.wholeMilliseconds
        return SQLStatement(.removeDeadWorkers, .text(time.epoch), .integer(oldest))
    }
}

extension WorkerReport {
    static func read(_ row: inout some SQLRow) throws(StoreError) -> WorkerReport {
        let id = row.text()
        let sealingKey = KeyID(row.text())
        let keys = row.text().split(separator: " ").compactMap { KeyID(String($0)) }
        guard let sealingKey else { throw StoreError(damagedRow: "The report of worker \(id)") }
        return WorkerReport(id: id, keyIDs: keys, sealingKeyID: sealingKey, isRefreshing: row.flag())
    }
}

extension SQLStore {
    package func report(_ worker: WorkerReport) async throws -> [WorkerReport] { try await store(worker) }

    /// Stores the report of a worker, with other statements in the same transaction. Dead workers are removed first:
    /// workers that come back together then lock the rows in one order.
    func store(_ worker: WorkerReport, with others: [SQLStatement] = []) async throws -> [WorkerReport] {
        let time = try await leaseTime()
        let report = SQLStatement(
            .reportWorker,
            .text(worker.id),
            .text(time.epoch),
            .integer(time.instant.milliseconds),
            .text(worker.sealingKeyID.description),
            .text(worker.keyIDs.map(\.description).joined(separator: " ")),
            .flag(worker.isRefreshing)
        )
        return try await change(
            others + [.removeDeadWorkers(at: time), report, .liveWorkers(at: time)],
            .repeatable,
            WorkerReport.read
        ).last
    }

    package func liveWorkers() async throws -> [WorkerReport] {
        try await rows(.liveWorkers(at: leaseTime()), by: .single, WorkerReport.read)
    }

    package func removeWorker(_ id: String) async throws {
        try await change([SQLStatement(.removeWorker, .text(id))], [.evenIfMoved, .repeatable])
    }

    // MARK: Notes

    package func note(_ name: String) async throws -> String? {
        try await first(SQLStatement(.readMeta, .text(name))) { $0.text() }
    }

    package func replaceNote(_ name: String, from former: String?, with text: String) async throws -> Bool {
        let statement =
            if let former {
                SQLStatement(.replaceMeta, .text(name), .text(text), .text(former))
            } else {
                SQLStatement(.addMeta, .text(name), .text(text))
            }
        return try await change([statement]) == [1]
    }

    private static var clockReadingKey: String { "clock_reading" }

    package func clockReading() async throws -> ClockReading? {
        try await note(Self.clockReadingKey).flatMap { ClockReading(stored: $0) }
    }

    package func record(_ reading: ClockReading) async throws {
        try await change([SQLStatement(.writeMeta, .text(Self.clockReadingKey), .text(reading.stored))])
    }

    // MARK: The right to deliver notices

    private static var deliveryKey: String { "notice_lease" }

    /// A lease that ends later than any can is free: the clock was set back since.
    package func claimNotices(owner: String, for span: Duration) async throws -> Bool {
        let former = try await note(Self.deliveryKey)
        let time = try await leaseTime()
        if let lease = former.flatMap(Lease.init(storedDelivery:)), lease.owner != owner, lease.isLive(at: time),
            lease.remaining(at: time) <= span * 2
        {
            return false
        }
        let lease = Lease(owner: owner, claim: 0, epoch: time.epoch, until: time.instant + span)
        guard try await replaceNote(Self.deliveryKey, from: former, with: lease.storedDelivery) else { return false }
        // This process might have stood still since it took the time: then the lease has ended already.
        return try await leaseTime().instant < lease.until
    }

    package func releaseNotices(owner: String) async throws {
        guard let stored = try await note(Self.deliveryKey), Lease(storedDelivery: stored)?.owner == owner else {
            return
        }
        try await change(
            [SQLStatement(.deleteMetaIfSame, .text(Self.deliveryKey), .text(stored))],
            [.evenIfMoved, .repeatable]
        )
    }
}

/// The form of the right of one process to deliver notices: "until length epoch+owner", with the length of the epoch,
/// since both can contain spaces.
extension Lease {
    fileprivate var storedDelivery: String { "\(until.milliseconds) \(epoch.utf8.count) \(epoch)\(owner)" }

    fileprivate init?(storedDelivery: String) {
        let parts = storedDelivery.split(separator: " ", maxSplits: 2)
        guard parts.count == 3, let until = Int64(parts[0]), let length = Int(parts[1]) else { return nil }
        let text = Array(parts[2].utf8)
        self.init(
            owner: String(decoding: text.dropFirst(length), as: UTF8.self),
            claim: 0,
            epoch: String(decoding: text.prefix(length), as: UTF8.self),
            until: BootInstant(milliseconds: until)
        )
    }
}
