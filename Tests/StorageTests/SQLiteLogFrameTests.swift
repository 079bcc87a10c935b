import Foundation
import TestSupport
import Testing

@testable import Base
@testable import Storage

/// The VFS holds a frame's header back until its page follows.
@Suite("A log has every frame of a commit when the commit returns", .timeLimit(.minutes(10)))
struct SQLiteLogFrameTests {
    /// With so few pages in memory, a transaction writes pages to the log before its end, replaces some of them there,
    /// and at its end writes headers again without their pages.
    private static let makeTables = SQLQuery(
        "make tables",
        sql: """
            PRAGMA cache_size = 10;
            PRAGMA boot.cache_size = 10;
            CREATE TABLE stored (id INTEGER PRIMARY KEY, text TEXT) STRICT;
            CREATE TABLE boot.leased (id INTEGER PRIMARY KEY, text TEXT) STRICT;
            """
    )

    private static func fill(_ table: String, round: Int) -> SQLQuery {
        SQLQuery(
            "fill \(table), round \(round)",
            sql: """
                INSERT OR REPLACE INTO \(table)
                WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < 999)
                SELECT number * 7919 % 1000, hex(zeroblob(200)) || '\(round)' FROM numbers
                """
        )
    }

    @Test("The files of a process that was killed after a commit hold all of it", arguments: ["stored", "leased"])
    func spilledTransaction(table: String) async throws {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            try await store.writer.run { connection throws(StoreError) in
                try connection.execute(Self.makeTables)
                for last in [3, 5] {
                    try connection.write { () throws(StoreError) in
                        for round in 1...last { try connection.run(Self.fill(table, round: round)) }
                    }
                }
            }
            let file = table == "stored" ? "grants.db" : "grants.db-leases-boot"
            try await TemporaryFolder.with { killed in
                for name in [file, file + "-wal"] {
                    try FileManager.default.copyItem(atPath: folder.path(name), toPath: killed.path(name))
                }
                let connection = try SQLiteConnection(path: killed.path(file), timeout: .seconds(1))
                let whole = try connection.integer(
                    SQLQuery("count", sql: "SELECT count(*) FROM \(table) WHERE length(text) = 401 AND text LIKE '%5'")
                )
                #expect(whole == 1000)
                let check = try connection.first(SQLQuery("check", sql: "PRAGMA integrity_check")) {
                    (row: inout SQLiteRow) throws(StoreError) in row.text()
                }
                #expect(check == "ok")
            }
            await store.close()
        }
    }
}
