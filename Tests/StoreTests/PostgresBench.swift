import Clocks
import Dispatch
import Foundation
import PostgresStore
import Secrets
import Store
import Testing

/// How many grants the simulated day is for.
private let grantsOfBench =
    ProcessInfo.processInfo.environment["REFRESH_WORKER_BENCH"].flatMap { Int64($0) } ?? 0

/// What a simulated day leaves behind, and what a refresh costs the worker: run with `REFRESH_WORKER_BENCH=grants`.
@Suite("What PostgreSQL costs", .enabled(if: PostgresServer.url != nil && grantsOfBench > 0))
struct PostgresBench {

    @Test("24 refreshes of each grant")
    func day() async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url)
            let ids = (1...grantsOfBench).map { GrantID(rawValue: $0 << 32) }
            for chunk in stride(from: 0, to: ids.count, by: 200) {
                try await store.add(
                    try ids[chunk..<min(chunk + 200, ids.count)].map { id in
                        let text = String(repeating: "x", count: 200)
                        return Grant.connected(
                            id: id,
                            userID: "user \(id)",
                            handover: Handover(
                                clientID: "client",
                                owner: .init(googleUserID: "g\(id)", email: "\(id)@example.com"),
                                scope: "openid email",
                                refreshToken: try Sample.refreshToken(text),
                                accessToken: try Sample.accessToken(text)
                            ),
                            dueAt: start,
                            at: start
                        ).grant
                    }
                )
            }
            let token = try Sample.sealed(String(repeating: "y", count: 200))
            try await report("before", url)
            let began = ContinuousClock.now
            let cpu = Self.cpu()
            for hour in 1...24 as ClosedRange<Int64> {
                let now = start + .seconds(3600 * hour)
                for chunk in stride(from: 0, to: ids.count, by: 100) {
                    let batch = Array(ids[chunk..<min(chunk + 100, ids.count)])
                    let claimed = try await store.claim(batch, dueBy: now, owner: "worker 1 of host", for: .seconds(60))
                    #expect(claimed.count == batch.count)
                    try await store.transact { transaction in
                        try transaction.willRead(grants: batch, healthOf: ["client"])
                        for id in batch {
                            var grant = try #require(try transaction.grant(id))
                            _ = grant.refreshed(
                                RefreshedTokens(
                                    accessToken: Grant.AccessToken(
                                        sealed: token,
                                        obtainedAt: now,
                                        expiresAt: now + .seconds(3600)
                                    )
                                ),
                                at: now,
                                due: { _ in now }
                            )
                            grant.setLease(nil)
                            try transaction.update(grant)
                        }
                    }
                }
                if hour % 6 == 0 { try await report("hour \(hour)", url) }
            }
            let rows = Double(grantsOfBench * 24)
            let wall = (ContinuousClock.now - began).inSeconds
            print("BENCH rows/s \(rows / wall) client CPU us/row \((Self.cpu() - cpu) / rows * 1e6)")
            await store.close()
        }
    }

    private func report(_ moment: String, _ url: Secret) async throws {
        let text = try await PostgresServer.run(
            """
            SELECT relname, n_live_tup, n_dead_tup, n_tup_upd, n_tup_hot_upd, autovacuum_count,
                pg_relation_size(relid) / 1024, pg_indexes_size(relid) / 1024
            FROM pg_stat_user_tables WHERE relname IN ('grants', 'grant_schedule') ORDER BY 1
            """,
            on: url.reveal()
        )
        print("BENCH \(moment)\n\(text)")
    }

    private static func cpu() -> Double {
        var usage = rusage()
        getrusage(0, &usage)
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }
}
