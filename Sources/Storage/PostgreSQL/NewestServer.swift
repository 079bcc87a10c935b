private import Synchronization

/// The newest server that this process has recorded, shared by all connections of a store.
///
/// Example: the primary fails, a standby is promoted to timeline 2, and the former primary comes back, still writable,
/// on timeline 1. A connection that reached it would claim grants that the other connections never see, and results
/// stored there would be lost. So a connection to a lower timeline, or to another cluster, is refused.
final class NewestServer: Sendable {
    private struct State {
        var newest: ServerIdentity?
        /// `true` if the `meta` table does not have the newest server yet.
        var isUnrecorded = false
        /// The database within its cluster, until `meta` has it.
        var unrecordedDatabase: Int64?
        /// The random id that the schema got when it was created.
        var storeID: String?
        var hasLostTables = false
    }

    private let state = Mutex(State())
    private let incidents: IncidentLog

    init(incidents: IncidentLog) {
        self.incidents = incidents
    }

    var newest: ServerIdentity? { state.withLock(\.newest) }

    /// The id of the schema that this process uses, or `nil` before the first connection.
    var storeID: String? {
        get { state.withLock(\.storeID) }
        set { state.withLock { $0.storeID = newValue } }
    }

    /// Records the server that responded, and returns the failure of its use unless it is the newest one.
    ///
    /// `database` is the server's name in the report of a fail-over.
    func record(_ identity: ServerIdentity, at database: DatabaseName) -> StoreError? {
        state.withLock { state in
            guard let newest = state.newest else {
                state.newest = identity
                state.isUnrecorded = true
                return nil
            }
            guard identity.system == newest.system else { return .foreign(identity, newest: newest, in: database) }
            guard identity.timeline >= newest.timeline else { return .outdated(identity, newest: newest, in: database) }
            if identity.timeline > newest.timeline {
                state.newest = identity
                state.isUnrecorded = true
                incidents.record(.failedOver(from: newest, to: identity, at: database))
            }
            return nil
        }
    }

    /// Compares the server with the one that the database was last used on, as its `meta` table says.
    ///
    /// A database that was restored, or upgraded with pg_upgrade, is in another cluster than before.
    func compare(recorded: ServerIdentity, with identity: ServerIdentity, at database: DatabaseName) -> StoreError? {
        state.withLock { state in
            guard recorded.system == identity.system else {
                incidents.record(.clusterReplaced(from: recorded, to: identity, at: database))
                return nil
            }
            if recorded.timeline > identity.timeline {
                if recorded.timeline > state.newest?.timeline ?? 0 { state.newest = recorded }
                return .outdated(identity, newest: recorded, in: database)
            }
            if recorded.timeline < identity.timeline {
                incidents.record(.failedOver(from: recorded, to: identity, at: database))
            } else if state.newest == identity {
                state.isUnrecorded = false
            }
            return nil
        }
    }

    /// Compares the database with the one of the last use, as `meta` says.
    ///
    /// `CREATE DATABASE … TEMPLATE` copies a database within its cluster, and a dump can be restored there: only the
    /// number of the database differs.
    func compare(recordedDatabase recorded: Int64?, with current: Int64, at database: DatabaseName) {
        guard recorded != current else { return }
        state.withLock { state in
            state.unrecordedDatabase = current
            if let recorded { incidents.record(.databaseCopied(from: recorded, to: current, at: database)) }
        }
    }

    /// `true` if a connection to this server can be used.
    ///
    /// A server that does not identify itself is admitted.
    func admits(_ identity: ServerIdentity?) -> Bool {
        guard let identity, let newest else { return true }
        return identity.system == newest.system && identity.timeline >= newest.timeline
    }

    /// The newest server, if the database does not have it yet and all incidents about it have been reported.
    var unrecorded: ServerIdentity? { state.withLock { $0.isUnrecorded && incidents.isEmpty ? $0.newest : nil } }

    /// The number of the database, if `meta` does not have it yet and all incidents about it have been reported.
    var unrecordedDatabase: Int64? { state.withLock { incidents.isEmpty ? $0.unrecordedDatabase : nil } }

    func markDatabaseRecorded() { state.withLock { $0.unrecordedDatabase = nil } }

    func markRecorded(_ identity: ServerIdentity) {
        state.withLock { if $0.newest == identity { $0.isUnrecorded = false } }
    }

    /// Records that the tables that this process used are missing, or were created again, and reports it once.
    func recordLostTables(of database: DatabaseName) {
        state.withLock { state in
            guard state.storeID != nil, !state.hasLostTables else { return }
            state.hasLostTables = true
            incidents.record(.tablesLost(of: database))
        }
    }

    /// Records that the tables exist again, as after a restore.
    func recordFoundTables() { state.withLock { $0.hasLostTables = false } }
}

extension StoreIncident {
    static func failedOver(from former: ServerIdentity, to identity: ServerIdentity, at database: DatabaseName)
        -> StoreIncident
    {
        StoreIncident(
            kind: .failedOver,
            text: """
                \(database) failed over from timeline \(former.timeline) to \(identity.timeline). If the standby was \
                asynchronous, the last commits before the fail-over are lost: tokens that the provider rotated in these seconds \
                end with invalid_grant one by one. See docs/postgres.md
                """
        )
    }

    static func clusterReplaced(from former: ServerIdentity, to identity: ServerIdentity, at database: DatabaseName)
        -> StoreIncident
    {
        StoreIncident(
            kind: .databaseReplaced,
            text: """
                \(database) was last used in another cluster (system identifier \(former.system), now \(identity.system)), as \
                after pg_upgrade or a restore. If it was restored, tokens that were rotated after the backup are lost; make sure \
                that no worker uses the former server
                """
        )
    }

    static func databaseCopied(from former: Int64, to current: Int64, at database: DatabaseName) -> StoreIncident {
        StoreIncident(
            kind: .databaseReplaced,
            text: """
                \(database) was last used as another database of the same server (oid \(former), now \(current)), as after a \
                copy or a restore. Tokens that were rotated since then are not in it; make sure that no worker uses the other \
                database
                """
        )
    }

    static func tablesLost(of database: DatabaseName) -> StoreIncident {
        StoreIncident(
            kind: .tablesLost,
            text: """
                the tables in \(database) were dropped, or dropped and created again, while this worker used them. It stores \
                nothing there. Do not restart it: results wait in its memory. Restore a backup of the schema \
                \(database.schema.text)
                """
        )
    }
}

extension StoreError {
    fileprivate static func outdated(_ server: ServerIdentity, newest: ServerIdentity, in database: DatabaseName)
        -> Self
    {
        Self(
            .unreachable,
            "\(database.capitalizedFirst) is on timeline \(server.timeline), and a server on timeline "
                + "\(newest.timeline) has replaced it. It is not used, because writes to it would be lost. Shut it "
                + "down, or make it a standby (pg_rewind). If the newer server was given up on purpose, restart "
                + "the workers."
        ).losingConnection
    }

    fileprivate static func foreign(_ server: ServerIdentity, newest: ServerIdentity, in database: DatabaseName) -> Self
    {
        Self(
            .unreachable,
            "\(database.capitalizedFirst) is another database cluster (system identifier \(server.system), not "
                + "\(newest.system)). It is not used. If it replaces the former one on purpose, as after pg_upgrade "
                + "or a restore, restart the workers."
        ).losingConnection
    }
}

/// A server's place in the history of a database cluster.
///
/// A promotion starts a new timeline with a higher number, and the former primary keeps the lower one
/// (https://www.postgresql.org/docs/15/continuous-archiving.html#BACKUP-TIMELINES). Every copy of a cluster has the
/// same system identifier.
struct ServerIdentity: Hashable, Sendable {
    let system: String
    let timeline: Int64
}

extension ServerIdentity {
    /// Parses the form in `meta`: both parts with a space between.
    init?(_ text: String) {
        let parts = text.split(separator: " ")
        guard parts.count == 2, let timeline = Int64(parts[1]) else { return nil }
        self.init(system: String(parts[0]), timeline: timeline)
    }

    /// Asks a server for its identity.
    ///
    /// The first column is the process id of the session.
    ///
    /// The timeline comes from the name of the current WAL file: `pg_control_checkpoint()` shows the former timeline
    /// until the first checkpoint after a promotion. All three functions can be called by every role. A standby has no
    /// current WAL file.
    static let query = SQLQuery(
        "server identity",
        sql: """
            SELECT pg_backend_pid()::bigint, system_identifier::text,
                CASE WHEN NOT pg_is_in_recovery()
                    THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END
            FROM pg_control_system()
            """
    )
}

extension SQLQuery {
    fileprivate static let readServerNotes = SQLQuery(
        "server and store id",
        sql: """
            SELECT key, value FROM refresh_worker.meta WHERE key IN ('server', 'store_id', 'database')
            UNION ALL SELECT 'current_database', oid::text FROM pg_catalog.pg_database WHERE datname = current_database()
            """
    )
    static let recordDatabase = SQLQuery(
        "record database",
        sql: """
            INSERT INTO refresh_worker.meta (key, value) VALUES ('database', $1)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
            """
    )
    /// Stores the server, unless another worker has recorded a higher timeline of the same cluster.
    static let recordServer = SQLQuery(
        "record server",
        sql: """
            INSERT INTO refresh_worker.meta AS old (key, value) VALUES ('server', $1 || ' ' || $2)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
            WHERE split_part(old.value, ' ', 1) <> $1 OR split_part(old.value, ' ', 2)::bigint < $2
            """
    )
}

extension PostgresStore {
    /// Compares the server with the one that the database was last used on, and stores the identity of the tables.
    func checkServer(_ connection: PostgresConnection, until deadline: CallDeadline) throws(StoreError) {
        var notes: [String: String] = [:]
        _ = try connection.run(StatementBatch(.readServerNotes), until: deadline)[0].rows { row in
            notes[row.text()] = row.text()
        }
        newestServer.storeID = notes["store_id"]
        let recorded = notes["server"].flatMap { ServerIdentity($0) }
        if let current = notes["current_database"].flatMap({ Int64($0) }) {
            // Another cluster has other numbers anyway, and is an incident of its own.
            let isSameCluster = connection.identity == nil || connection.identity?.system == recorded?.system
            let former = isSameCluster ? notes["database"].flatMap { Int64($0) } : nil
            newestServer.compare(recordedDatabase: former, with: current, at: connection.database)
        }
        guard let identity = connection.identity, let recorded else { return }
        let failure = newestServer.compare(recorded: recorded, with: identity, at: connection.database)
        if let failure { throw failure }
    }
}
