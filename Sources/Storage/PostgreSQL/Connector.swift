private import Dispatch
private import Synchronization

/// Opens connections: tries the hosts of an address one after another, and refuses a server that another one has
/// replaced.
///
/// libpq could try the hosts itself, but it would spend the whole time on a host that does not respond, could not skip
/// a former primary that still accepts writes, and its errors list every host.
final class Connector: Sendable {
    /// The database with all its hosts.
    let description: String
    private let hosts: [DatabaseAddress]
    /// The known servers; `nil` if any server is accepted.
    let newestServer: NewestServer?
    /// The index of the host that accepted the last connection, which is tried first.
    private let preferred = Atomic(0)

    init(to address: DatabaseAddress, newestServer: NewestServer?) {
        description = address.description
        hosts = address.hosts
        self.newestServer = newestServer
    }

    func open(until deadline: CallDeadline) throws(StatementFailure) -> PostgresConnection {
        let first = preferred.load(ordering: .relaxed)
        var failures: [StatementFailure] = []
        for offset in hosts.indices {
            let index = (first + offset) % hosts.count
            do throws(StatementFailure) {
                let connection = try PostgresConnection.open(
                    hosts[index],
                    until: deadline.part(of: hosts.count - offset)
                )
                try check(connection)
                preferred.store(index, ordering: .relaxed)
                return connection
            } catch {
                failures.append(error)
            }
        }
        throw StatementFailure(connecting: failures)
    }

    /// Throws if the server is not the newest one, or was not when the connection was opened.
    func check(_ connection: PostgresConnection) throws(StatementFailure) {
        guard let newestServer, let identity = connection.identity else { return }
        try Self.requireCurrent(newestServer.record(identity, at: connection.database), identity, connection.database)
    }

    static func requireCurrent(
        _ relation: NewestServer.Relation,
        _ identity: ServerIdentity,
        _ database: String
    ) throws(StatementFailure) {
        switch relation {
        case .current: return
        case .outdated(let newest):
            throw StatementFailure(outdated: database, on: identity.timeline, newest: newest.timeline)
        case .foreign(let newest):
            throw StatementFailure(foreign: database, system: identity.system, expected: newest.system)
        }
    }

    /// Reads the timelines of all hosts of the address at the same time, so that a former primary that responds first
    /// does not count as the newest server.
    ///
    /// It blocks for at most `timeout`. A host that does not respond in this time is left out.
    func survey(within timeout: Duration) {
        guard let newestServer, hosts.count > 1 else { return }
        let group = DispatchGroup()
        for host in hosts.map(\.withoutSessionRequirement) {
            DispatchQueue.global().async(group: group) {
                do {
                    let connection = try PostgresConnection.open(host, until: CallDeadline(in: timeout, grace: .zero))
                    guard let identity = connection.identity else { return }
                    _ = newestServer.record(identity, at: connection.database)
                } catch {
                    // The survey compares the hosts that respond. A worker that needs this host reports the same error
                    // itself.
                    return
                }
            }
        }
        group.wait()
    }

    var hasSeveralHosts: Bool { hosts.count > 1 }
}

extension StatementFailure {
    init(outdated database: String, on timeline: Int64, newest: Int64) {
        self.init(
            StoreError(
                .unreachable,
                "\(database.capitalizedFirst) is on timeline \(timeline), and a server on timeline \(newest) has "
                    + "replaced it. It is not used, because writes to it would be lost. Shut it down, or make it a "
                    + "standby (pg_rewind). If the newer server was given up on purpose, restart the workers."
            ),
            losesConnection: true
        )
    }

    init(foreign database: String, system: String, expected: String) {
        self.init(
            StoreError(
                .unreachable,
                "\(database.capitalizedFirst) is another database cluster (system identifier \(system), not "
                    + "\(expected)). It is not used. If it replaces the former one on purpose, as after pg_upgrade or "
                    + "a restore, restart the workers."
            ),
            losesConnection: true
        )
    }

    /// Creates the failure to report if no host of an address accepted a connection.
    fileprivate init(connecting failures: [StatementFailure]) {
        guard failures.count > 1, let first = failures.first else {
            self = failures.first ?? StatementFailure(.fault, "The database's address names no host.")
            return
        }
        // The call may be repeated if it may succeed with one of the hosts.
        let codes = failures.map(\.error.code)
        let code = [.readOnly, .unreachable, .busy].first(where: codes.contains) ?? first.error.code
        let messages = failures.map { "\($0.error.message)" }
        self.init(StoreError(code, messages.joined(separator: " ")), losesConnection: true)
    }
}
