import Base
import Storage

/// The checks of a PostgreSQL server and of this program's schema on it.
extension Doctor {
    /// The number of connections below which two workers with nine each and an administrator might not all get one.
    private static let fewConnections = 20

    func serverChecks(_ address: DatabaseAddress) async -> [Check] {
        var facts: ServerFacts
        let hostClock: Timestamp
        do {
            facts = try await ServerFacts.read(address, time: SystemTime())
            hostClock = SystemTime().now
            await facts.countPooledConnections(to: address)
        } catch {
            return [.fault("\(error)").named("database server")]
        }
        let checks = Self.checks(of: facts, at: address, hostClock: hostClock)
        guard facts.schema != nil, !checks.contains(where: { $0.severity == .fault }) else { return checks }
        do {
            guard let store = try await context.open(.server(address), time: context.time, makesTables: false) else {
                return checks
            }
            let records = await recordChecks(of: store)
            await store.close()
            return checks + records
        } catch {
            return checks + [.fault("\(error)").named(Self.content)]
        }
    }

    static func checks(of facts: ServerFacts, at address: DatabaseAddress, hostClock: Timestamp) -> [Check] {
        [
            server(facts, at: address).named("database server"),
            connection(facts, to: address).named("database connection"),
            tables(facts, in: address.schema).named("database tables"), settings(facts).named("database settings"),
            autovacuum(facts).named("autovacuum"), connectionLimit(facts).named("database connections"),
            serverClock(facts, hostClock: hostClock).named("database clock"),
        ]
    }

    private static func server(_ facts: ServerFacts, at address: DatabaseAddress) -> Check {
        let name = "PostgreSQL \(facts.version) at \(address.url), \(facts.bytes.inBytes)"
        if facts.isStandby {
            return .fault("\(name), is a standby and takes no writes", advice: "name the primary, or all servers")
        }
        if let command = facts.writableBy { return .fault("\(name), takes no writes", advice: "run there: \(command)") }
        return facts.isDurable
            ? .ok(name) : .warning("\(name), can lose committed data", advice: "set fsync = on there")
    }

    private static func connection(_ facts: ServerFacts, to address: DatabaseAddress) -> Check {
        let pooler = facts.isPooled ? ", through a pooler" : ""
        if address.isLocal { return .ok("within this machine\(pooler)") }
        let advice = "write sslmode=verify-full into the address"
        guard facts.isEncrypted else {
            return .fault("not encrypted\(pooler)", advice: "let the server offer TLS, and \(advice)")
        }
        guard address.demandsCertificate else {
            return .warning("encrypted\(pooler), but any server would be trusted", advice: advice)
        }
        return .ok("encrypted, the server's certificate is verified\(pooler)")
    }

    private static func tables(_ facts: ServerFacts, in name: SchemaName) -> Check {
        let user = facts.user
        let grant = "GRANT ALL ON ALL TABLES IN SCHEMA \(name.identifier) TO \(user);"
        guard let schema = facts.schema else {
            // The rights are known even for tables that this user cannot read.
            guard facts.lackingRights.isEmpty else {
                let use = "GRANT USAGE, CREATE ON SCHEMA \(name.identifier) TO \(user);"
                return .fault("\(user) cannot use them", advice: "as their owner run: \(use) \(grant)")
            }
            guard !facts.mayCreateSchema else {
                return .warning("missing: the worker creates them at its first start, as \(user)")
            }
            let advice = "as the database's owner run: CREATE SCHEMA \(name.identifier) AUTHORIZATION \(user);"
            return .fault("missing, or \(user) cannot use them", advice: advice)
        }
        guard facts.lackingRights.isEmpty else {
            let names = facts.lackingRights.prefix(3).joined(separator: ", ")
            let rest = facts.lackingRights.count > 3 ? " and \(facts.lackingRights.count - 3) more" : ""
            return .fault("\(user) lacks \(names)\(rest)", advice: "as their owner run: \(grant)")
        }
        return .ok("schema \(schema), usable by \(user)")
    }

    private static func settings(_ facts: ServerFacts) -> Check {
        if facts.waitsLessForStandby {
            let finding = "synchronous_commit is below on: a fail-over loses what the standby had not stored"
            return .warning(finding, advice: "remove that setting of the role \(facts.user) or of the database")
        }
        let level = facts.isolation
        return .ok(
            level == "read committed"
                ? "as the worker needs them"
                : "default_transaction_isolation is \(level): the worker asks for read committed itself"
        )
    }

    private static func autovacuum(_ facts: ServerFacts) -> Check {
        guard facts.hasAutovacuum else {
            return .warning(
                "off: the tables grow with every refresh",
                advice: "set autovacuum = on and track_counts = on there"
            )
        }
        guard !facts.seesOtherSessions else { return .ok("on") }
        return .ok(
            "on; old transactions of other users, which keep dead rows, cannot be seen: GRANT pg_read_all_stats TO "
                + "\(facts.user)"
        )
    }

    private static func connectionLimit(_ facts: ServerFacts) -> Check {
        let needed = ServerFacts.maximumWorkerConnections
        if let count = facts.pooledConnections, count < needed {
            return .fault(
                "the pooler gave \(count) of the \(needed) that a worker needs",
                advice: ServerFacts.poolerAdvice
            )
        }
        let text = "the server allows \(facts.maximumConnections) in total"
        guard facts.maximumConnections >= fewConnections || facts.isPooled else {
            return .warning(
                "\(text), few for several workers",
                advice: "raise max_connections, or put a pooler in front"
            )
        }
        return .ok(text)
    }

    /// Compares the server's clock with the host's.
    ///
    /// All workers use the server's clock, so a difference is not a fault.
    private static func serverClock(_ facts: ServerFacts, hostClock: Timestamp) -> Check {
        // The server read its clock about halfway through the round trip.
        let difference = facts.clock - hostClock + facts.roundTrip * 0.5
        let span = difference.magnitude + .milliseconds(500)
        guard span >= .seconds(2) else { return .ok("agrees with this machine's; stored times use it") }
        let direction = difference < .zero ? "behind" : "ahead of"
        return .ok("\(span.inTwoUnits) \(direction) this machine's; stored times use it")
    }
}
