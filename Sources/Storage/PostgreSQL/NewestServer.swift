private import Base
private import Dispatch
private import Synchronization

/// The newest server that this process has recorded, shared by all connections of a store.
///
/// Example: the primary fails, a standby is promoted to timeline 2, and the former primary comes back, still writable,
/// on timeline 1. A connection that reached it would claim grants that the other connections never see, and results
/// stored there would be lost. So a connection to a lower timeline, or to another cluster, is refused.
final class NewestServer: Sendable {
    /// The relation of a server to the newest one.
    enum Relation: Equatable {
        case current
        /// Another server of the same cluster was promoted after this one.
        case outdated(newest: ServerIdentity)
        /// The server belongs to another cluster.
        case foreign(newest: ServerIdentity)
    }

    private struct State {
        var newest: ServerIdentity?
        /// `true` if the `meta` table does not have the newest server yet.
        var isUnrecorded = false
        /// The random id that the schema got when it was created.
        var storeID: String?
        var incidents: [StoreIncident] = []
        var hasLostTables = false
    }

    private let state = Mutex(State())

    var newest: ServerIdentity? { state.withLock(\.newest) }

    /// The id of the schema that this process uses; `nil` before the first connection.
    var storeID: String? {
        get { state.withLock(\.storeID) }
        set { state.withLock { $0.storeID = newValue } }
    }

    /// Records the server that responded, and returns its relation to the newest one.
    ///
    /// `database` is the server's name in the report of a fail-over.
    func record(_ identity: ServerIdentity, at database: String) -> Relation {
        state.withLock { state in
            guard let newest = state.newest else {
                state.newest = identity
                state.isUnrecorded = true
                return .current
            }
            guard identity.system == newest.system else { return .foreign(newest: newest) }
            guard identity.timeline >= newest.timeline else { return .outdated(newest: newest) }
            if identity.timeline > newest.timeline {
                state.newest = identity
                state.isUnrecorded = true
                state.incidents.append(.failedOver(from: newest, to: identity, at: database))
            }
            return .current
        }
    }

    /// Compares the server with the one that the database was last used on, as its `meta` table says.
    ///
    /// A database that was restored, or upgraded with pg_upgrade, is in another cluster than before.
    func compare(recorded: ServerIdentity, with identity: ServerIdentity, at database: String) -> Relation {
        state.withLock { state in
            guard recorded.system == identity.system else {
                state.incidents.append(.clusterReplaced(from: recorded, to: identity, at: database))
                return .current
            }
            if recorded.timeline > identity.timeline {
                if recorded.timeline > state.newest?.timeline ?? 0 { state.newest = recorded }
                return .outdated(newest: recorded)
            }
            if recorded.timeline < identity.timeline {
                state.incidents.append(.failedOver(from: recorded, to: identity, at: database))
            } else if state.newest == identity {
                state.isUnrecorded = false
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
        state.withLock { $0.isUnrecorded && $0.incidents.isEmpty ? $0.newest : nil }
    }

    func markRecorded(_ identity: ServerIdentity) {
        state.withLock { if $0.newest == identity { $0.isUnrecorded = false } }
    }

    /// Records that the tables that this process used are missing, or were created again; reports it once.
    func recordLostTables(of database: String) {
        state.withLock { state in
            guard state.storeID != nil, !state.hasLostTables else { return }
            state.hasLostTables = true
            state.incidents.append(.tablesLost(of: database))
        }
    }

    /// Records that the tables exist again, as after a restore.
    func recordFoundTables() {
        state.withLock { $0.hasLostTables = false }
    }

    /// The incidents since the last call.
    func takeIncidents() -> [StoreIncident] {
        state.withLock { state in
            defer { state.incidents = [] }
            return state.incidents
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
                end with invalid_grant one by one. See docs/postgres.md
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

/// Reads the timelines of all hosts of an address, at most once in an interval.
final class HostSurvey: Sendable {
    /// The interval at which a worker with good connections checks if another host was promoted.
    private static let interval: Duration = .seconds(30)
    /// The time for a host to respond; a slower one is left out.
    private static let timeout: Duration = .seconds(2)

    private let last = Mutex<BootInstant?>(nil)

    /// Returns after all hosts have responded, or their time is over.
    func survey(_ connector: Connector) async {
        guard connector.hasSeveralHosts else { return }
        last.withLock { $0 = SystemTime().sinceBoot }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                connector.survey(within: Self.timeout)
                continuation.resume()
            }
        }
    }

    /// Starts a survey in the background if the last one is long ago.
    func surveyIfDue(_ connector: Connector) {
        let now = SystemTime().sinceBoot
        let isDue = last.withLock { last in last.map { now - $0 >= Self.interval } ?? true }
        if isDue { Task { await survey(connector) } }
    }
}
