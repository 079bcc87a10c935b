import Clocks
import PostgresStore
import Store
import WorkerConfiguration
import WorkerLifecycle

/// The checks of a PostgreSQL server and of this program's place on it.
extension Doctor {
    private static let serverSubject = "database server"
    /// The number of connections below which there is hardly room for two workers of eight each and an administrator.
    private static let fewConnections = 20

    func serverDiagnoses(_ address: DatabaseAddress) async -> [Diagnosis] {
        let facts: ServerFacts
        do {
            facts = try await ServerFacts.read(address, time: SystemTime())
        } catch {
            return [.fault(Self.serverSubject, "\(error)")]
        }
        let judgements = Self.judge(facts, at: address, hostClock: SystemTime().now)
        guard facts.schema != nil, !judgements.contains(where: { $0.grade == .fault }) else { return judgements }
        do {
            guard let store = try await context.open(.server(address), time: context.time, makesTables: false) else {
                return judgements
            }
            let records = await recordDiagnoses(of: store)
            await store.close()
            return judgements + records
        } catch {
            return judgements + [.fault(Self.contentSubject, "\(error)")]
        }
    }

    static func judge(_ facts: ServerFacts, at address: DatabaseAddress, hostClock: Timestamp) -> [Diagnosis] {
        [
            judgeServer(facts, address), judgeWay(facts, address), judgeTables(facts), judgeUpkeep(facts),
            judgeConnections(facts), judgeServerClock(facts, hostClock: hostClock),
        ]
    }

    private static func judgeServer(_ facts: ServerFacts, _ address: DatabaseAddress) -> Diagnosis {
        let name = "PostgreSQL \(facts.version) at \(address.url), \(ByteCount.text(facts.bytes))"
        if facts.isStandby {
            return .fault(serverSubject, "\(name), is a standby and takes no writes: name the primary, or all servers")
        }
        if facts.isReadOnly {
            let mend = "ALTER DATABASE … SET default_transaction_read_only = off"
            return .fault(serverSubject, "\(name), takes no writes: run there: \(mend)")
        }
        guard facts.isDurable else {
            return .warning(serverSubject, "\(name), may lose committed data: set fsync = on there")
        }
        return .ok(serverSubject, name)
    }

    private static func judgeWay(_ facts: ServerFacts, _ address: DatabaseAddress) -> Diagnosis {
        let subject = "database connection"
        let pooler = facts.isPooled ? ", through a pooler" : ""
        if address.isLocal { return .ok(subject, "within this machine\(pooler)") }
        guard facts.isEncrypted else {
            return .fault(
                subject,
                "not encrypted\(pooler): let the server offer TLS, and write sslmode=verify-full into the address"
            )
        }
        guard address.demandsCertificate else {
            return .warning(
                subject,
                "encrypted\(pooler), but any server would be trusted: write sslmode=verify-full into the address"
            )
        }
        return .ok(subject, "encrypted, the server's certificate is verified\(pooler)")
    }

    private static func judgeTables(_ facts: ServerFacts) -> Diagnosis {
        let subject = "database tables"
        guard let schema = facts.schema else {
            // The rights are known even for tables that this user cannot read.
            guard facts.lackingRights.isEmpty else {
                return .fault(
                    subject,
                    """
                    there, but closed to \(facts.user): as their owner run: GRANT USAGE, CREATE ON SCHEMA refresh_worker TO \
                    \(facts.user); GRANT ALL ON ALL TABLES IN SCHEMA refresh_worker TO \(facts.user);
                    """
                )
            }
            return facts.mayCreateSchema
                ? .warning(subject, "not there yet: the worker makes them at its first start, as \(facts.user)")
                : .fault(
                    subject,
                    """
                    not there yet, or closed to \(facts.user): as the database's owner run: CREATE SCHEMA refresh_worker \
                    AUTHORIZATION \(facts.user);
                    """
                )
        }
        guard facts.lackingRights.isEmpty else {
            let named = facts.lackingRights.prefix(3).joined(separator: ", ")
            let rest = facts.lackingRights.count > 3 ? " and \(facts.lackingRights.count - 3) more" : ""
            return .fault(
                subject,
                """
                \(facts.user) lacks \(named)\(rest): as their owner run: GRANT ALL ON ALL TABLES IN SCHEMA refresh_worker TO \
                \(facts.user);
                """
            )
        }
        return .ok(subject, "schema \(schema), open to \(facts.user)")
    }

    private static func judgeUpkeep(_ facts: ServerFacts) -> Diagnosis {
        let subject = "autovacuum"
        return facts.hasAutovacuum
            ? .ok(subject, "on")
            : .warning(
                subject,
                "off: the tables grow with every refresh; set autovacuum = on and track_counts = on there"
            )
    }

    private static func judgeConnections(_ facts: ServerFacts) -> Diagnosis {
        let subject = "database connections"
        let words = "the server allows \(facts.maximumConnections) in all"
        guard facts.maximumConnections >= fewConnections || facts.isPooled else {
            return .warning(
                subject,
                "\(words), few for several workers: raise max_connections, or put a pooler in front"
            )
        }
        return .ok(subject, words)
    }

    /// Compares the server's clock with the host's.
    ///
    /// All workers use the server's clock, so a difference is not a fault.
    private static func judgeServerClock(_ facts: ServerFacts, hostClock: Timestamp) -> Diagnosis {
        // The server read its clock about halfway through the round trip.
        let difference = facts.clock - hostClock + facts.roundTrip * 0.5
        let span = (difference < .zero ? Duration.zero - difference : difference) + .milliseconds(500)
        let words =
            span < .seconds(2)
            ? "agrees with this machine's"
            : "\(span.inTwoUnits) \(difference < .zero ? "behind" : "ahead of") this machine's"
        return .ok("database clock", "\(words); stored times go by it")
    }
}
