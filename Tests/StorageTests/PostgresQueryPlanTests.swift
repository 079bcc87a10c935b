import Crypto
import Testing

@testable import Storage

@Suite(
    "Scans and claims keep to the indexes of PostgreSQL",
    .enabled(if: PostgresServer.url != nil, PostgresServer.skipped),
    .timeLimit(.minutes(10))
)
struct PostgresQueryPlanTests {
    /// The queries of each scan and each claim, with the index that finds their rows.
    private let expected: [(query: SQLQuery, index: String)] = [
        (PostgresStore.due, "grants_due"),
        (PostgresStore.dueAfter, "grants_due"),
        (PostgresStore.scanQueries.dueClients, "grants_due"),
        (PostgresStore.scanQueries.countDue, "grants_due"),
        (SQLQuery.claimDue, "grant_schedule_pkey"),
        (SQLQuery.claimAny, "grant_schedule_pkey"),
        (SQLQuery.claimed, "grant_schedule_pkey"),
        (PostgresTransaction.grantQueries.ofAccount.ids, "grants_by_account"),
        (PostgresTransaction.grantQueries.byDigestMark.ids, "grants_by_digest_mark"),
    ]

    @Test("Each scan and each claim uses its index, and reads no table as a whole")
    func indexes() async throws {
        try await withManyGrants { url in
            for (query, index) in expected {
                let plan = try await plan(of: query, on: url)
                #expect(plan.contains("Index") && plan.contains(" \(index)"), "\(query.name): \(plan)")
                #expect(!plan.contains("Seq Scan on grant"), "\(query.name): \(plan)")
            }
            // These expectations can fail.
            try await PostgresServer.run("DROP INDEX refresh_worker.grants_due", on: url)
            for (query, index) in expected where index == "grants_due" {
                #expect(try await plan(of: query, on: url).contains("Seq Scan on grant_schedule"), "\(query.name)")
            }
        }
    }

    @Test("A page of grants reads the schedule of these grants alone")
    func pages() async throws {
        try await withManyGrants { url in
            let copied = SQLQuery("page", sql: "\(PostgresStore.allOfGrants) WHERE id > $2 ORDER BY id LIMIT $1")
            let last = SQLQuery("last", sql: "\(PostgresStore.allOfGrants) ORDER BY id DESC LIMIT 1")
            for query in [PostgresStore.grantQueries.page, PostgresStore.grantQueries.pageOfState, copied, last] {
                let plan = try await plan(of: query, on: url)
                #expect(plan.contains("Nested Loop") && !plan.contains("Seq Scan on grant"), "\(plan)")
                #expect(plan.contains("Index Cond: (grant_id = g.id)"), "\(plan)")
            }
        }
    }

    @Test("No statement about leases reads a clock that differs where an extension computes a part of it")
    func clocks() async throws {
        try await withManyGrants { url in
            for query in [SQLQuery.claimDue, SQLQuery.claimAny, SQLQuery.renew] {
                let plan = try await plan(of: query, "VERBOSE", on: url)
                #expect(plan.contains("statement_timestamp()") && !plan.contains("clock_timestamp()"), "\(plan)")
            }
        }
    }

    /// Calls `body` with a database of so many grants that the planner prefers an index.
    private func withManyGrants(_ body: (_ url: String) async throws -> Void) async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            try await store.add([try Sample.grant(1)])
            await store.close()
            try await PostgresServer.run(
                """
                INSERT INTO refresh_worker.users (user_id, created_at)
                SELECT 'copy ' || n, 0 FROM generate_series(1, 20000) AS n;
                INSERT INTO refresh_worker.grants
                SELECT (jsonb_populate_record(g, jsonb_build_object('id', 1000 + n, 'user_id', 'copy ' || n))).*
                FROM refresh_worker.grants AS g, generate_series(1, 20000) AS n WHERE g.id = 1;
                INSERT INTO refresh_worker.grant_schedule
                SELECT (jsonb_populate_record(s, jsonb_build_object(
                    'grant_id', 1000 + n, 'client_id', 'client ' || n % 100, 'due_at', n
                ))).*
                FROM refresh_worker.grant_schedule AS s, generate_series(1, 20000) AS n WHERE s.grant_id = 1;
                ANALYZE;
                """,
                on: url.reveal()
            )
            try await body(url.reveal())
        }
    }

    /// Returns the plan for any values of the parameters: a connection keeps the statement, and so its plan.
    private func plan(of query: SQLQuery, _ option: String = "COSTS OFF", on url: String) async throws -> String {
        let last = (1...9).last { query.text.contains("$\($0)") } ?? 0
        let values = last == 0 ? "" : "(\(Array(repeating: "NULL", count: last).joined(separator: ", ")))"
        return try await PostgresServer.run(
            """
            SET plan_cache_mode = force_generic_plan;
            PREPARE query AS \(query.text);
            EXPLAIN (\(option)) EXECUTE query\(values);
            """,
            on: url
        )
    }
}
