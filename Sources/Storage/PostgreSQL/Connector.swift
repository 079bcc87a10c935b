private import Base
private import CPostgres
private import Crypto
private import Dispatch
private import Glibc
private import Synchronization

/// Opens connections: tries the hosts of an address one after another, and refuses a server that another one has
/// replaced.
///
/// libpq could try the hosts itself, but it would spend the whole time on a host that does not respond, could not skip
/// a former primary that still accepts writes, and its errors list every host.
final class Connector: Sendable {
    /// The interval at which a worker with good connections checks if another host was promoted.
    static let surveyInterval: Duration = .seconds(30)
    private static let surveyTimeout: Duration = .seconds(2)

    /// The database with all its hosts.
    let description: String
    private let hosts: [DatabaseAddress]
    /// The known servers, or `nil` if any server is accepted.
    let newestServer: NewestServer?
    /// The index of the host that accepted the last connection, which is tried first.
    private let preferred = Atomic(0)
    private let lastSurvey = Mutex<BootInstant?>(nil)

    init(to address: DatabaseAddress, newestServer: NewestServer?) {
        description = address.description
        hosts = address.hosts
        self.newestServer = newestServer
    }

    func open(until deadline: CallDeadline) throws(StoreError) -> PostgresConnection {
        let first = preferred.load(ordering: .relaxed)
        var failures: [StoreError] = []
        for offset in hosts.indices {
            let index = (first + offset) % hosts.count
            do throws(StoreError) {
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
        throw StoreError(connecting: failures)
    }

    /// Throws if the server is not the newest one, or was not when the connection was opened.
    func check(_ connection: PostgresConnection) throws(StoreError) {
        guard let newestServer, let identity = connection.identity else { return }
        if let failure = newestServer.record(identity, at: connection.database) { throw failure }
    }

    /// Reads the timelines of all hosts of the address at the same time, so that a former primary that responds first
    /// does not count as the newest server.
    ///
    /// A host that does not respond in time is left out.
    func survey() async {
        guard let newestServer, hosts.count > 1 else { return }
        lastSurvey.withLock { $0 = SystemTime().sinceBoot }
        await withCheckedContinuation { continuation in
            let group = DispatchGroup()
            for host in hosts.map(\.withoutSessionRequirement) {
                DispatchQueue.global().async(group: group) {
                    do {
                        let deadline = CallDeadline(in: Self.surveyTimeout, grace: .zero)
                        let connection = try PostgresConnection.open(host, until: deadline)
                        guard let identity = connection.identity else { return }
                        _ = newestServer.record(identity, at: connection.database)
                    } catch {
                        // The survey compares the hosts that respond. A worker that needs this host reports the same
                        // error itself.
                        return
                    }
                }
            }
            group.notify(queue: .global()) { continuation.resume() }
        }
    }

    /// Starts a survey in the background if the last one is long ago.
    func surveyIfDue() {
        let now = SystemTime().sinceBoot
        let isDue = lastSurvey.withLock { last in last.map { now - $0 >= Self.surveyInterval } ?? true }
        if isDue { Task { await survey() } }
    }
}

extension StoreError {
    /// Creates the error to report if no host of an address accepted a connection.
    fileprivate init(connecting failures: [StoreError]) {
        guard failures.count > 1, let first = failures.first else {
            self = failures.first ?? StoreError(.fault, "The database's address names no host.")
            return
        }
        // The call can be repeated if it might succeed with one of the hosts.
        let codes = failures.map(\.code)
        let code = [.readOnly, .unreachable, .busy].first(where: codes.contains) ?? first.code
        self = StoreError(code, failures.map(\.message).joined(separator: " ")).losingConnection
    }
}

extension PostgresConnection {
    /// The oldest server that is known to support all statements.
    static let oldestServer = 130_000

    /// The query for a server that does not identify itself, such as some managed servers.
    private static let sessionQuery = SQLQuery(
        "session",
        sql: "SELECT pg_backend_pid()::bigint, NULL::text, NULL::bigint"
    )

    /// Connects, and identifies the server.
    static func open(_ address: DatabaseAddress, until deadline: CallDeadline) throws(StoreError)
        -> PostgresConnection
    {
        OpenSSL.prepare()
        let started = unsafe address.withOptions { keywords, values in
            unsafe PQconnectStartParams(keywords, values, 0)
        }
        guard let handle = unsafe started else {
            throw StoreError(
                .ioFailure,
                "There is no memory for a connection to \(address). Look at the machine's memory."
            )
        }
        do throws(StoreError) {
            try unsafe finish(handle, to: address, until: deadline)
        } catch {
            unsafe PQfinish(handle)
            throw error
        }
        let connection = unsafe PostgresConnection(adopting: handle, database: address.name)
        guard connection.serverVersion >= oldestServer else {
            throw StoreError(
                .cannotOpen,
                "The server of \(address) is PostgreSQL \(connection.serverVersion / 10_000), and refresh-worker "
                    + "needs 13 or later. Upgrade the server, or name another."
            )
        }
        // Until that is known, no statement is prepared under a name.
        connection.markPooled()
        try identify(connection, until: deadline)
        return connection
    }

    /// Detects a pooler, which shows another process id than the server's, and identifies the server.
    private static func identify(_ connection: PostgresConnection, until deadline: CallDeadline)
        throws(StoreError)
    {
        let result: StatementResult
        do throws(StoreError) {
            result = try connection.run(StatementBatch(ServerIdentity.query), until: deadline)[0]
        } catch  where !error.losesConnection {
            result = try connection.run(StatementBatch(sessionQuery), until: deadline)[0]
        }
        _ = try result.first { row in
            if row.integer() == Int64(connection.serverProcess) { connection.markDirect() }
            let system = row.optionalText()
            let timeline = row.optionalInteger()
            if let system, let timeline { connection.identity = ServerIdentity(system: system, timeline: timeline) }
        }
        guard connection.isPooled else { return }
        // A pooler in statement mode ends the connection at the first.
        for statement in ["BEGIN", "ROLLBACK"] {
            try connection.execute(statement, named: "asking the pooler for a transaction", until: deadline)
        }
    }

    private static func finish(
        _ handle: OpaquePointer,
        to address: DatabaseAddress,
        until deadline: CallDeadline
    ) throws(StoreError) {
        guard unsafe PQstatus(handle) != CONNECTION_BAD else { throw unsafe refusal(handle, by: address) }
        // Makes the message contain the server's code.
        _ = unsafe PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
        var events = POLLOUT
        while true {
            guard let ready = unsafe wait(for: events, on: PQsocket(handle), until: deadline), ready != 0 else {
                throw StoreError(connecting: "no response in time", database: address.name)
            }
            switch unsafe PQconnectPoll(handle) {
            case PGRES_POLLING_OK: return
            case PGRES_POLLING_READING: events = POLLIN
            case PGRES_POLLING_WRITING: events = POLLOUT
            default: throw unsafe refusal(handle, by: address)
            }
        }
    }

    private static func refusal(_ handle: OpaquePointer, by address: DatabaseAddress) -> StoreError {
        // libpq reports this itself, without a code of the server's.
        guard unsafe PQconnectionNeedsPassword(handle) == 0 else {
            return StoreError(
                .refused,
                "\(address.description.capitalizedFirst) asks for a password, and there is none. Put it into a "
                    + "password file (passfile= in the URL, or PGPASSFILE), or the whole URL into a file that "
                    + "url-file: names."
            ).losingConnection
        }
        return StoreError(connecting: unsafe String(cString: PQerrorMessage(handle)), database: address.name)
    }
}
