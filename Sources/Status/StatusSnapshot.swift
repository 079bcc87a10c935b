package import Base
package import Crypto
package import Scheduler
package import Storage
package import Telemetry

/// Everything that is known about an installation, as of one instant.
///
/// `status`, `/status`, `/readyz`, the metrics, `doctor` and the status page all show it, and the ``findings`` that
/// follow from it. A part that was not looked at is `nil` or empty.
package struct StatusSnapshot: Sendable {
    /// What a database counts for a snapshot.
    ///
    /// A server takes long for it while an old transaction keeps millions of dead rows, which is when the rest of the
    /// snapshot is needed most.
    package enum Count: String, CaseIterable, Sendable {
        /// The statistics of the grants.
        case grants
        /// The number of tokens that each key seals.
        case tokens = "the tokens of each key"
        /// The comparison of the rows with those that were stored.
        case rows
    }

    package var at: Timestamp
    package var grants = GrantStatistics.empty
    /// The counts that the database did not finish in time, which say nothing.
    package var timedOutCounts: Set<Count> = []
    /// The client ids that are configured, or have a health and grants that are refreshed, ordered by id. All with a
    /// health if ``clientsInUse`` is `nil`.
    package var clients: [ClientStatus] = []
    /// The client ids with grants that are refreshed, or `nil` if they were not looked up.
    package var clientsInUse: Set<String>?
    /// The live workers, or `nil` if they were not looked up.
    package var workers: [WorkerReport]?
    /// The time of the last `--run-once`, if a timer refreshes the grants.
    package var lastPassAt: Timestamp?
    /// The clock by which old data is deleted, or `nil` if it was not read.
    package var deletionClock: DeletionClock?
    /// The number of tokens that need each key: that it seals, or that are bound to it.
    package var keysInUse: [KeyID: Int] = [:]
    /// The keys of the ring, in the order of its file.
    package var ringKeys: [KeyID] = []
    package var sealingKey: KeyID?
    /// The key that the next rotation activates.
    package var pendingKey: KeyID?
    package var isKeyRingUnreadable = false
    /// `nil` if the folder cannot be read.
    package var spilledFiles: [SpilledFile]? = []
    /// `nil` if notices are not configured.
    package var notices: PendingNotices?
    /// `true` if this installation receives security events.
    package var receivesSecurityEvents = false
    package var lastSecurityEventAt: Timestamp?
    /// The recent refreshes of all workers, as far as they have stored them.
    package var activity = RecentActivity()
    package var database = ""
    /// The location to which the database was moved, or `nil` if it is in use.
    package var movedTo: String?
    package var databaseBytes: Int64 = 0
    /// The version of the database's tables, or `nil` if it could not be read.
    package var schema: Int?
    /// What the opening of the database and a count of its rows have found.
    package var incidents: [StoreIncident] = []
    /// The transaction that keeps the most dead rows in a server's tables, if one is known.
    package var oldestTransaction: OldestTransaction?
    /// The free bytes on the disk of the database, or `nil` for a server.
    package var freeSpace: Int64?
    /// `nil` if no timer makes backups.
    package var backups: NightlyBackups?
    package var process = ProcessStatus()

    package init(at: Timestamp) {
        self.at = at
    }

    /// The statistics of the grants, or `nil` if the database did not finish them in time.
    package var countedGrants: GrantStatistics? { areGrantsCounted ? grants : nil }

    package var areGrantsCounted: Bool { !timedOutCounts.contains(.grants) }

    /// The clients, and those that have only expired grants.
    var allClients: [ClientStatus] {
        let known = Set(clients.map(\.id))
        return clients
            + grants.expired.clients.keys.filter { !known.contains($0) }.sorted().map { ClientStatus(id: $0) }
    }

    /// The number of tokens that need a key, for each key of the ring and each other key in use.
    ///
    /// `tokens` is `nil` if they were not counted in time, `isInRing` if the ring cannot be read.
    package var keyCounts: [(id: KeyID, tokens: Int?, isInRing: Bool?)] {
        let areCounted = !timedOutCounts.contains(.tokens)
        let others = keysInUse.keys.filter { !ringKeys.contains($0) }.sorted()
        return (ringKeys + others).map { id in
            (id, areCounted ? keysInUse[id] ?? 0 : nil, isKeyRingUnreadable ? nil : ringKeys.contains(id))
        }
    }

    /// Returns this snapshot with what a process knows about itself at a later time.
    ///
    /// The alarms that only the database knows stay.
    package func with(_ process: ProcessStatus, at now: Timestamp) -> StatusSnapshot {
        var snapshot = self
        snapshot.at = now
        snapshot.process = process
        snapshot.process.add(self.process.alarms)
        return snapshot
    }
}
