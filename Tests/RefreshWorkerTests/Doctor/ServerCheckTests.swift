import Crypto
import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker
@testable import Storage

@Suite("The doctor on a PostgreSQL server")
struct ServerCheckTests {
    private static let now = ManualTime().now

    private static func facts(_ change: (inout ServerFacts) -> Void = { _ in }) -> ServerFacts {
        var facts = ServerFacts(
            version: "15.8",
            schema: 1,
            user: "worker",
            bytes: 9_000_000,
            clock: now,
            roundTrip: .milliseconds(2),
            isEncrypted: true,
            isPooled: false,
            isStandby: false,
            isolation: "read committed",
            waitsLessForStandby: false,
            mayCreateSchema: true,
            lackingRights: [],
            hasAutovacuum: true,
            seesOtherSessions: true,
            isDurable: true,
            maximumConnections: 100
        )
        change(&facts)
        return facts
    }

    private static func check(
        _ facts: ServerFacts,
        at url: String = "postgres://w:secret-of-test@db/grants?sslmode=verify-full"
    ) throws -> [Check] {
        Doctor.checks(of: facts, at: try DatabaseAddress(url: Secret(url)), hostClock: now)
    }

    @Test("all is ok with a durable primary over verified TLS")
    func well() throws {
        let checks = try Self.check(Self.facts())
        #expect(checks.allSatisfy { $0.severity == .ok }, "\(checks)")
        #expect(checks.first?.text.contains("PostgreSQL 15.8 at postgres://w@db/grants") == true)
        #expect(!"\(checks)".contains("secret-of-test"))
    }

    /// A change of the facts, the severity, and a part of the text.
    private static let cases: [(@Sendable (inout ServerFacts) -> Void, Check.Severity, String)] = [
        ({ $0.isStandby = true }, .fault, "name the primary"),
        ({ $0.writableBy = "ALTER ROLE w SET x = off" }, .fault, "run there: ALTER ROLE w SET x = off"),
        ({ $0.waitsLessForStandby = true }, .warning, "synchronous_commit is below on"),
        ({ $0.pooledConnections = 1 }, .fault, "the pooler gave 1 of the 9 that a worker needs: set pool_mode"),
        ({ $0.isDurable = false }, .warning, "fsync = on"),
        ({ $0.isEncrypted = false }, .fault, "not encrypted"),
        ({ $0.schema = nil }, .warning, "creates them at its first start"),
        (
            {
                $0.schema = nil
                $0.mayCreateSchema = false
            }, .fault, "CREATE SCHEMA refresh_worker AUTHORIZATION worker"
        ),
        (
            {
                $0.schema = nil
                $0.lackingRights = ["SELECT on grants"]
            }, .fault, "GRANT USAGE, CREATE ON SCHEMA refresh_worker TO worker"
        ),
        ({ $0.lackingRights = ["INSERT on grants", "b", "c", "d"] }, .fault, "INSERT on grants, b, c and 1 more"),
        ({ $0.hasAutovacuum = false }, .warning, "autovacuum = on"),
        ({ $0.maximumConnections = 10 }, .warning, "raise max_connections"),
    ]

    @Test("another default isolation is named, and is no fault")
    func isolation() throws {
        let checks = try Self.check(Self.facts { $0.isolation = "serializable" })
        let settings = try #require(checks.first { $0.name == "database settings" })
        #expect(settings.severity == .ok && settings.text.contains("isolation is serializable: the worker asks for"))
    }

    @Test("the advice is for the schema of the address")
    func schema() throws {
        for change: @Sendable (inout ServerFacts) -> Void in [
            { $0.mayCreateSchema = false }, { $0.lackingRights = ["SELECT on grants"] },
        ] {
            let facts = Self.facts { facts in
                facts.schema = nil
                change(&facts)
            }
            let checks = try Self.check(facts, at: "postgres:///g?schema=user")
            let tables = try #require(checks.first { $0.name == "database tables" })
            #expect(tables.text.contains("SCHEMA \"user\" "), "\(tables)")
        }
    }

    @Test("a user who cannot see the transactions of others learns what to grant, which is no fault")
    func otherSessions() throws {
        let checks = try Self.check(Self.facts { $0.seesOtherSessions = false })
        let vacuum = try #require(checks.first { $0.name == "autovacuum" })
        #expect(vacuum.severity == .ok && vacuum.text.contains("GRANT pg_read_all_stats TO worker"))
    }

    @Test("each fault is reported with advice", arguments: 0..<12)
    func faults(number: Int) throws {
        let (change, severity, words) = Self.cases[number]
        let odd = try Self.check(Self.facts(change)).filter { $0.severity != .ok }
        #expect(odd.map(\.severity) == [severity])
        #expect(odd.first?.text.contains(words) == true, "\(odd)")
    }

    @Test(
        "the connection must be encrypted only if it leaves the machine",
        arguments: [
            ("postgres://db/g", Check.Severity.warning), ("postgres://db/g?sslmode=require", .warning),
            ("postgres:///g", .ok), ("postgres:///g?host=/run/pg", .ok), ("postgres://127.0.0.1/g", .ok),
            ("postgres://localhost,db/g", .warning),
        ]
    )
    func connection(url: String, severity: Check.Severity) throws {
        let check = try #require(
            try Self.check(Self.facts(), at: url).first { $0.name == "database connection" }
        )
        #expect(check.severity == severity, "\(check)")
    }

    @Test(
        "a difference of the server's clock is reported, and is not a fault",
        arguments: [(-7200, "2 h behind"), (0, "agrees"), (90, "1 min 30 s ahead of")]
    )
    func clock(seconds: Int64, text: String) throws {
        let checks = try Self.check(Self.facts { facts in facts.clock = Self.now + .seconds(seconds) })
        let clock = try #require(checks.first { $0.name == "database clock" })
        #expect(clock.severity == .ok)
        #expect(clock.text.contains(text), "\(clock)")
    }
}
