import Base
import Storage
import Worker

/// The checks of a PostgreSQL server and of this program's schema on it.
extension Doctor {
    private static let serverSubject = "database server"
    /// The number of connections below which two workers with eight each and an administrator may not all get one.
    private static let fewConnections = 20

    func serverDiagnoses(_ address: DatabaseAddress) async -> [Diagnosis] {
        var facts: ServerFacts
        let hostClock: Timestamp
        do {
            facts = try await ServerFacts.read(address, time: SystemTime())
            hostClock = SystemTime().now
            await facts.countPooledConnections(to: address)
        } catch {
            return [.fault(Self.serverSubject, "\(error)")]
        }
        let diagnoses = Self.check(facts, at: address, hostClock: hostClock)
        guard facts.schema != nil, !diagnoses.contains(where: { $0.severity == .fault }) else { return diagnoses }
        do {
            guard let store = try await context.open(.server(address), time: context.time, makesTables: false) else {
                return diagnoses
            }
            let records = await recordDiagnoses(of: store)
            await store.close()
            return diagnoses + records
        } catch {
            return diagnoses + [.fault(Self.contentSubject, "\(error)")]
        }
    }

    static func check(_ facts: ServerFacts, at address: DatabaseAddress, hostClock: Timestamp) -> [Diagnosis] {
        [
            checkServer(facts, address), checkConnection(facts, address), checkTables(facts), checkSettings(facts),
            checkAutovacuum(facts), checkConnectionLimit(facts), checkServerClock(facts, hostClock: hostClock),
        ]
    }

    private static func checkServer(_ facts: ServerFacts, _ address: DatabaseAddress) -> Diagnosis {
        let name = "PostgreSQL \(facts.version) at \(address.url), \(ByteCount.text(facts.bytes))"
        if facts.isStandby {
            return .fault(
                serverSubject,
                "\(name), is a standby and takes no writes",
                advice: "name the primary, or all servers"
            )
        }
        if let command = facts.writableBy {
            return .fault(serverSubject, "\(name), takes no writes", advice: "run there: \(command)")
        }
        guard facts.isDurable else {
            return .warning(serverSubject, "\(name), may lose committed data", advice: "set fsync = on there")
        }
        return .ok(serverSubject, name)
    }

    private static func checkConnection(_ facts: ServerFacts, _ address: DatabaseAddress) -> Diagnosis {
        let subject = "database connection"
        let pooler = facts.isPooled ? ", through a pooler" : ""
        if address.isLocal { return .ok(subject, "within this machine\(pooler)") }
        guard facts.isEncrypted else {
            return .fault(
                subject,
                "not encrypted\(pooler)",
                advice: "let the server offer TLS, and write sslmode=verify-full into the address"
            )
        }
        guard address.demandsCertificate else {
            return .warning(
                subject,
                "encrypted\(pooler), but any server would be trusted",
                advice: "write sslmode=verify-full into the address"
            )
        }
        return .ok(subject, "encrypted, the server's certificate is verified\(pooler)")
    }

    private static func checkTables(_ facts: ServerFacts) -> Diagnosis {
        let subject = "database tables"
        guard let schema = facts.schema else {
            // The rights are known even for tables that this user cannot read.
            guard facts.lackingRights.isEmpty else {
                return .fault(
                    subject,
                    "\(facts.user) may not use them",
                    advice: """
                        as their owner run: GRANT USAGE, CREATE ON SCHEMA refresh_worker TO \(facts.user); GRANT ALL ON ALL \
                        TABLES IN SCHEMA refresh_worker TO \(facts.user);
                        """
                )
            }
            return facts.mayCreateSchema
                ? .warning(subject, "missing: the worker creates them at its first start, as \(facts.user)")
                : .fault(
                    subject,
                    "missing, or \(facts.user) may not use them",
                    advice: "as the database's owner run: CREATE SCHEMA refresh_worker AUTHORIZATION \(facts.user);"
                )
        }
        guard facts.lackingRights.isEmpty else {
            let names = facts.lackingRights.prefix(3).joined(separator: ", ")
            let rest = facts.lackingRights.count > 3 ? " and \(facts.lackingRights.count - 3) more" : ""
            return .fault(
                subject,
                "\(facts.user) lacks \(names)\(rest)",
                advice: "as their owner run: GRANT ALL ON ALL TABLES IN SCHEMA refresh_worker TO \(facts.user);"
            )
        }
        return .ok(subject, "schema \(schema), usable by \(facts.user)")
    }

    private static func checkSettings(_ facts: ServerFacts) -> Diagnosis {
        let subject = "database settings"
        if facts.waitsLessForStandby {
            return .warning(
                subject,
                "synchronous_commit is below on: a fail-over loses what the standby had not stored",
                advice: "remove that setting of the role \(facts.user) or of the database"
            )
        }
        return .ok(
            subject,
            facts.isolation == "read committed"
                ? "as the worker needs them"
                : "default_transaction_isolation is \(facts.isolation): the worker asks for read committed itself"
        )
    }

    private static func checkAutovacuum(_ facts: ServerFacts) -> Diagnosis {
        let subject = "autovacuum"
        return facts.hasAutovacuum
            ? .ok(subject, "on")
            : .warning(
                subject,
                "off: the tables grow with every refresh",
                advice: "set autovacuum = on and track_counts = on there"
            )
    }

    private static func checkConnectionLimit(_ facts: ServerFacts) -> Diagnosis {
        let subject = "database connections"
        if let count = facts.pooledConnections, count < ServerFacts.maximumWorkerConnections {
            return .fault(
                subject,
                "the pooler gave \(count) of the \(ServerFacts.maximumWorkerConnections) that a worker needs",
                advice: ServerFacts.poolerAdvice
            )
        }
        let text = "the server allows \(facts.maximumConnections) in total"
        guard facts.maximumConnections >= fewConnections || facts.isPooled else {
            return .warning(
                subject,
                "\(text), few for several workers",
                advice: "raise max_connections, or put a pooler in front"
            )
        }
        return .ok(subject, text)
    }

    /// Compares the server's clock with the host's.
    ///
    /// All workers use the server's clock, so a difference is not a fault.
    private static func checkServerClock(_ facts: ServerFacts, hostClock: Timestamp) -> Diagnosis {
        // The server read its clock about halfway through the round trip.
        let difference = facts.clock - hostClock + facts.roundTrip * 0.5
        let span = (difference < .zero ? Duration.zero - difference : difference) + .milliseconds(500)
        let text =
            span < .seconds(2)
            ? "agrees with this machine's"
            : "\(span.inTwoUnits) \(difference < .zero ? "behind" : "ahead of") this machine's"
        return .ok("database clock", "\(text); stored times use it")
    }
}
