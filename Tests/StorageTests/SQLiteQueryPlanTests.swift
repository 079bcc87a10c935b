import Base
import Storage
import Testing

@testable import Storage

@Suite("Scans keep to the indexes and off the tokens", .timeLimit(.minutes(10)))
struct SQLiteQueryPlanTests {
    @Test(
        "The plan of each scan names its index",
        arguments: [
            (SQLiteQuery.due, "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at<?)"),
            (
                SQLiteQuery.dueAtCursor,
                "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at=? AND id>?)"
            ),
            (
                SQLiteQuery.dueAfterCursor,
                "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at>? AND due_at<?)"
            ),
            (SQLiteQuery.countDue, "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at<?)"),
            (SQLiteQuery.countByState, "SCAN grant_counts"),
            (SQLiteQuery.countEnding, "SEARCH grants USING INDEX grants_by_ending (refresh_expires_at<?)"),
            (SQLiteQuery.countIdle, "SEARCH grants USING INDEX grants_by_use (used_on<?)"),
            (SQLiteQuery.countKeys, "SCAN grants USING COVERING INDEX grants_by_key"),
            (SQLiteQuery.grantByID, "SEARCH grants USING INTEGER PRIMARY KEY (rowid=?)"),
            (SQLiteQuery.grantOfUser, "SEARCH grants USING INDEX sqlite_autoindex_grants_1 (user_id=?)"),
            (SQLiteQuery.pageOfState, "SEARCH grants USING INDEX grants_by_state (state=? AND rowid>?)"),
            (SQLiteQuery.eventsOfGrant, "SEARCH grant_events USING INDEX grant_events_by_grant (grant_id=?)"),
            (SQLiteQuery.lastConnection, "SEARCH grant_events USING INDEX grant_events_by_grant (grant_id=?)"),
            (SQLiteTransaction.selectSameAccount, "SEARCH grants USING INDEX grants_by_account (google_user_id=?)"),
            (SQLiteTransaction.selectSameEmail, "SEARCH grants USING INDEX grants_by_email (<expr>=?)"),
            (
                SQLiteQuery.grantsOfAccount,
                "SEARCH grants USING INDEX grants_by_account (google_user_id=?)"
            ),
            (SQLiteQuery.grantsByPrefixMark, "SEARCH grants USING INDEX grants_by_prefix_mark (refresh_prefix_mark=?)"),
            (SQLiteQuery.grantsByDigestMark, "SEARCH grants USING INDEX grants_by_digest_mark (refresh_digest_mark=?)"),
            (SQLiteQuery.userByID, "SEARCH users USING PRIMARY KEY (user_id=?)"),
            (SQLiteQuery.pageOfUsers, "SEARCH users USING PRIMARY KEY (user_id>?)"),
            (SQLiteQuery.userOfAccount, "SEARCH users USING INDEX users_by_account (google_user_id=?)"),
            (SQLiteQuery.usersByEmail, "SEARCH users USING INDEX users_by_email (<expr>=?)"),
            (SQLiteQuery.sessionByID, "SEARCH sessions USING PRIMARY KEY (id=?)"),
            (SQLiteQuery.endSession, "SEARCH sessions USING PRIMARY KEY (id=?)"),
            (SQLiteQuery.dueNotices, "SEARCH notices USING INDEX notices_due (next_try_at<?)"),
            (SQLiteQuery.nextNotice, "SEARCH notices USING COVERING INDEX notices_due (next_try_at>?)"),
            (SQLiteQuery.expediteNotices, "SEARCH notices USING INDEX notices_due (next_try_at>?)"),
            (SQLiteQuery.acceptNotice, "SEARCH notices USING INTEGER PRIMARY KEY (rowid=?)"),
            (SQLiteQuery.giveUpNotice, "SEARCH notices USING INTEGER PRIMARY KEY (rowid=?)"),
            (SQLiteQuery.postponeNotice, "SEARCH notices USING INTEGER PRIMARY KEY (rowid=?)"),
        ]
    )
    func plan(query: SQLiteQuery, expected: String) async throws {
        let steps = try await plan(of: query)
        #expect(steps.first == expected)
        let join = "SEARCH boot.leases USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"
        #expect(steps.dropFirst().allSatisfy { $0 == join })
    }
}

extension SQLiteQueryPlanTests {
    @Test(
        "The plan of each query of several steps uses these indexes, and scans no table",
        arguments: [
            (
                SQLiteQuery.expedite,
                [
                    "grants USING INTEGER PRIMARY KEY (rowid=?)",
                    "grants USING INDEX grants_by_state (state=? AND rowid>?)",
                ]
            ),
            (
                SQLiteQuery.countExpiredRetries,
                ["grants USING INDEX grants_by_state (state=? AND rowid>? AND rowid<?)"]
            ),
            (SQLiteQuery.countExpiredOverdue, ["grants USING INDEX grants_due (client_id=? AND due_at<?)"]),
            (SQLiteQuery.removeExpiredSessions, ["sessions_by_end (expires_at<?)"]),
            (SQLiteQuery.removeExpiredSuccessors, ["sessions_with_successor (successor_until<?)"]),
            (SQLiteQuery.removeFutureSuccessors, ["sessions_with_successor (successor_until>?)"]),
            (SQLiteQuery.removeOldSecurityEvents, ["security_events_by_time (at<?)"]),
            (SQLiteQuery.removeOldNotices, ["notices_settled (<expr><?)"]),
            (
                SQLiteQuery.endedTombstones,
                ["users_by_deletion (deleted_until<?)", "sqlite_autoindex_grants_1 (user_id=?)"]
            ),
            (
                SQLiteQuery.removeEvents,
                ["grant_events_by_grant (grant_id=?)", "sqlite_autoindex_grants_1 (user_id=?)"]
            ),
            (
                SQLiteTransaction.trimEvents,
                ["grant_events_by_grant (grant_id=? AND seq<?)", "grant_events_by_grant (grant_id=?)"]
            ),
            (SQLiteQuery.pendingNotices, ["notices USING INDEX notices_due (next_try_at>?)"]),
            (SQLiteQuery.insertNotice, ["notices_by_user (user_id=?)"]),
            (SQLiteQuery.endSessionsOfUser, ["INDEX sessions_by_user (user_id=?)"]),
            (SQLiteQuery.removeGrant, ["grants USING INDEX sqlite_autoindex_grants_1 (user_id=?)"]),
            (SQLiteQuery.removeUser, ["users USING PRIMARY KEY (user_id=?)"]),
            (SQLiteQuery.followNotice, ["notices USING INTEGER PRIMARY KEY (rowid=?)", "notices_by_user (user_id=?)"]),
            (SQLiteQuery.finishedNotices, ["notices_by_time (at>?)"]),
            (SQLiteQuery.replayNotices, ["notices_by_user (user_id=?)"]),
            (
                SQLiteQuery.scheduleFirstNotices,
                ["notices_by_user (user_id=?)", "notices_by_user (user_id=? AND seq<?)"]
            ),
        ]
    )
    func steps(query: SQLiteQuery, indexes: [String]) async throws {
        let steps = try await plan(of: query)
        for index in indexes {
            #expect(steps.contains { $0.hasSuffix(index) }, "\(steps)")
        }
        let scans = steps.filter { $0.hasPrefix("SCAN") && !$0.hasPrefix("SCAN (subquery") && !$0.contains("INDEX") }
        #expect(scans.isEmpty, "\(steps)")
    }

    @Test("A claim looks its grants up by id", arguments: SQLiteQuery.claimable + SQLiteQuery.claimableAnyTime)
    func claims(query: SQLiteQuery) async throws {
        let steps = try await plan(of: query)
        #expect(steps.contains("SEARCH grants USING INTEGER PRIMARY KEY (rowid=?)"), "\(steps)")
        #expect(!steps.contains { $0.hasPrefix("SCAN grants") || $0.hasPrefix("USE TEMP B-TREE") }, "\(steps)")
    }

    @Test("The clients are looked up in the due index one by one")
    func clients() async throws {
        let steps = try await plan(of: .dueClients).filter { $0.contains("grants") }
        #expect(steps.count == 2)
        #expect(steps.allSatisfy { $0.hasPrefix("SEARCH grants USING COVERING INDEX grants_due") }, "\(steps)")
    }

    @Test(
        "A refresh updates the index of due times, on a new day that of use, and the row once",
        arguments: [(0, 1), (1, 2)]
    )
    func refresh(daysLater: Int64, indexes: Int) async throws {
        let former = try Sample.grant(1)
        var grant = former
        let now = start + .seconds(daysLater * 86_400)
        _ = grant.refreshed(RefreshedTokens(accessToken: try Sample.accessToken("next")), at: now, due: { _ in now })
        let update = SQLiteGrantRow.extent(of: grant, from: former).update
        let operations = try await rows(SQLiteQuery("operations", "EXPLAIN " + update.text), skipping: 1)
        #expect(operations.count { $0 == "IdxDelete" } == indexes)
        #expect(!operations.contains("OpenEphemeral"))
    }

    private func plan(of query: SQLiteQuery) async throws -> [String] {
        try await rows(SQLiteQuery("plan", "EXPLAIN QUERY PLAN " + query.text), skipping: 3)
    }

    /// Returns the texts in the column after the first `columns` ones.
    private func rows(_ query: SQLiteQuery, skipping columns: Int) async throws -> [String] {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            let texts = try await store.reader.run { connection throws(StoreError) in
                try connection.rows(query) { (row: inout SQLiteRow) throws(StoreError) in
                    for _ in 0..<columns { _ = row.integer() }
                    return row.text()
                }
            }
            await store.close()
            return texts
        }
    }
}

extension SQLiteQuery: CustomTestStringConvertible {
    /// The query's name instead of its text.
    public var testDescription: String { name }
}
