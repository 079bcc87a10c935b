import Store
private import Synchronization

/// The newest server that this process knows of, shared by all connections of a store.
///
/// Example: the primary fails, a standby is promoted to timeline 2, and the former primary comes back, still writable,
/// on timeline 1. A connection that reached it would claim grants that the other connections never see, and results
/// stored there would be lost. So a connection to a lower timeline, or to another cluster, is refused.
final class ServerTimeline: Sendable {
    /// The relation of a server to the newest one.
    enum Relation: Equatable {
        case current
        /// Another server of the same cluster was promoted after this one.
        case outdated(newest: ServerIdentity)
        /// The server belongs to another cluster.
        case foreign(newest: ServerIdentity)
    }

    private struct Knowledge {
        var newest: ServerIdentity?
        /// `true` if the `meta` table does not have the newest server yet.
        var isUnrecorded = false
        /// The random id that the schema got when it was created.
        var storeID: String?
        var incidents: [StoreIncident] = []
        var hasLostTables = false
    }

    private let knowledge = Mutex(Knowledge())

    var newest: ServerIdentity? { knowledge.withLock(\.newest) }

    /// The id of the schema that this process works with, once known.
    var storeID: String? {
        get { knowledge.withLock(\.storeID) }
        set { knowledge.withLock { $0.storeID = newValue } }
    }

    /// Records the server that responded, and judges it.
    ///
    /// `database` is the server's name in the report of a fail-over.
    func meet(_ identity: ServerIdentity, at database: String) -> Relation {
        knowledge.withLock { knowledge in
            guard let newest = knowledge.newest else {
                knowledge.newest = identity
                knowledge.isUnrecorded = true
                return .current
            }
            guard identity.system == newest.system else { return .foreign(newest: newest) }
            guard identity.timeline >= newest.timeline else { return .outdated(newest: newest) }
            if identity.timeline > newest.timeline {
                knowledge.newest = identity
                knowledge.isUnrecorded = true
                knowledge.incidents.append(.failedOver(from: newest, to: identity, at: database))
            }
            return .current
        }
    }

    /// Compares the server with the one that the database was last used on, as its `meta` table says.
    ///
    /// A database that was restored, or upgraded with pg_upgrade, is in another cluster than before.
    func compare(recorded: ServerIdentity, with identity: ServerIdentity, at database: String) -> Relation {
        knowledge.withLock { knowledge in
            guard recorded.system == identity.system else {
                knowledge.incidents.append(.clusterReplaced(from: recorded, to: identity, at: database))
                return .current
            }
            if recorded.timeline > identity.timeline {
                if recorded.timeline > knowledge.newest?.timeline ?? 0 { knowledge.newest = recorded }
                return .outdated(newest: recorded)
            }
            if recorded.timeline < identity.timeline {
                knowledge.incidents.append(.failedOver(from: recorded, to: identity, at: database))
            } else if knowledge.newest == identity {
                knowledge.isUnrecorded = false
            }
            return .current
        }
    }

    /// `true` if a connection to this server may be used; a server that does not identify itself may be.
    func admits(_ identity: ServerIdentity?) -> Bool {
        guard let identity, let newest else { return true }
        return identity.system == newest.system && identity.timeline >= newest.timeline
    }

    /// The newest server, if the database does not have it yet and all incidents about it have been reported.
    var unrecorded: ServerIdentity? {
        knowledge.withLock { $0.isUnrecorded && $0.incidents.isEmpty ? $0.newest : nil }
    }

    func recorded(_ identity: ServerIdentity) {
        knowledge.withLock { if $0.newest == identity { $0.isUnrecorded = false } }
    }

    /// Records that the tables that this process used are missing, or were created again; reports it once.
    func noteLostTables(of database: String) {
        knowledge.withLock { knowledge in
            guard knowledge.storeID != nil, !knowledge.hasLostTables else { return }
            knowledge.hasLostTables = true
            knowledge.incidents.append(.tablesLost(of: database))
        }
    }

    /// Records that the tables exist again, as after a restore.
    func noteTables() {
        knowledge.withLock { $0.hasLostTables = false }
    }

    /// The incidents since the last call.
    func takeIncidents() -> [StoreIncident] {
        knowledge.withLock { knowledge in
            defer { knowledge.incidents = [] }
            return knowledge.incidents
        }
    }
}

extension StoreIncident {
    static func failedOver(from former: ServerIdentity, to identity: ServerIdentity, at database: String)
        -> StoreIncident
    {
        StoreIncident(
            kind: .failedOver,
            text: """
                \(database) failed over from timeline \(former.timeline) to \(identity.timeline). If the standby was \
                asynchronous, the last commits before the fail-over are lost: tokens that the provider rotated in these seconds \
                end with invalid_grant one by one. See docs/scaling.md
                """
        )
    }

    static func clusterReplaced(from former: ServerIdentity, to identity: ServerIdentity, at database: String)
        -> StoreIncident
    {
        StoreIncident(
            kind: .clusterReplaced,
            text: """
                \(database) was last used in another cluster (system identifier \(former.system), now \(identity.system)), as \
                after pg_upgrade or a restore. If it was restored, tokens that were rotated after the backup are lost; make sure \
                that no worker uses the former server
                """
        )
    }

    static func tablesLost(of database: String) -> StoreIncident {
        StoreIncident(
            kind: .tablesLost,
            text: """
                the tables in \(database) were dropped, or dropped and created again, while this worker used them. It stores \
                nothing there. Do not restart it: results wait in its memory. Restore a backup of the schema refresh_worker
                """
        )
    }
}
