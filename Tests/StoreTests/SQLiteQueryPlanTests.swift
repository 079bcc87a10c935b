import Base
import Store
import Testing

@testable import SQLiteStore

@Suite("Scans keep to the indexes and off the tokens", .timeLimit(.minutes(10)))
struct SQLiteQueryPlanTests {
    @Test(
        "The plan of each scan names its index",
        arguments: [
            (Query.due, "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at<?)"),
            (Query.dueAtCursor, "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at=? AND id>?)"),
            (
                Query.dueAfterCursor,
                "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at>? AND due_at<?)"
            ),
            (Query.countDue, "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at<?)"),
            (Query.countByState, "SCAN grant_counts"),
            (Query.countEnding, "SEARCH grants USING INDEX grants_by_ending (refresh_expires_at<?)"),
            (Query.countIdle, "SEARCH grants USING INDEX grants_by_use (used_on<?)"),
            (Query.countKeys, "SCAN grants USING COVERING INDEX grants_by_key"),
            (Query.grantByID, "SEARCH grants USING INTEGER PRIMARY KEY (rowid=?)"),
            (Query.grantOfUser, "SEARCH grants USING INDEX sqlite_autoindex_grants_1 (user_id=?)"),
            (Query.pageOfState, "SEARCH grants USING INDEX grants_by_state (state=? AND rowid>?)"),
            (Query.eventsOfGrant, "SEARCH grant_events USING INDEX grant_events_by_grant (grant_id=?)"),
            (Query.lastConnection, "SEARCH grant_events USING INDEX grant_events_by_grant (grant_id=?)"),
            (SQLiteTransaction.selectSameAccount, "SEARCH grants USING INDEX grants_by_account (google_user_id=?)"),
            (SQLiteTransaction.selectSameEmail, "SEARCH grants USING INDEX grants_by_email (<expr>=?)"),
            (
                Query.grantsOfAccount,
                "SEARCH grants USING INDEX grants_by_account (google_user_id=?)"
            ),
            (Query.grantsByPrefixMark, "SEARCH grants USING INDEX grants_by_prefix_mark (refresh_prefix_mark=?)"),
            (Query.grantsByDigestMark, "SEARCH grants USING INDEX grants_by_digest_mark (refresh_digest_mark=?)"),
            (Query.userByID, "SEARCH users USING PRIMARY KEY (user_id=?)"),
            (Query.pageOfUsers, "SEARCH users USING PRIMARY KEY (user_id>?)"),
            (Query.userOfAccount, "SEARCH users USING INDEX users_by_account (google_user_id=?)"),
            (Query.usersByEmail, "SEARCH users USING INDEX users_by_email (<expr>=?)"),
            (Query.sessionByID, "SEARCH sessions USING PRIMARY KEY (id=?)"),
            (Query.endSession, "SEARCH sessions USING PRIMARY KEY (id=?)"),
            (Query.dueNotices, "SEARCH notices USING INDEX notices_due (next_try_at<?)"),
            (Query.nextNotice, "SEARCH notices USING COVERING INDEX notices_due (next_try_at>?)"),
            (Query.expediteNotices, "SEARCH notices USING INDEX notices_due (next_try_at>?)"),
            (Query.acceptNotice, "SEARCH notices USING INTEGER PRIMARY KEY (rowid=?)"),
            (Query.giveUpNotice, "SEARCH notices USING INTEGER PRIMARY KEY (rowid=?)"),
            (Query.postponeNotice, "SEARCH notices USING INTEGER PRIMARY KEY (rowid=?)"),
        ]
    )
    func plan(query: Query, expected: String) async throws {
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
                Query.expedite,
                [
                    "grants USING INTEGER PRIMARY KEY (rowid=?)",
                    "grants USING INDEX grants_by_state (state=? AND rowid>?)",
                ]
            ),
            (
                Query.countExpiredRetries,
                ["grants USING INDEX grants_by_state (state=? AND rowid>? AND rowid<?)"]
            ),
            (Query.countExpiredOverdue, ["grants USING INDEX grants_due (client_id=? AND due_at<?)"]),
            (Query.removeExpiredSessions, ["sessions_by_end (expires_at<?)"]),
            (Query.removeExpiredSuccessors, ["sessions_with_successor (successor_until<?)"]),
            (Query.removeFutureSuccessors, ["sessions_with_successor (successor_until>?)"]),
            (Query.removeOldSecurityEvents, ["security_events_by_time (at<?)"]),
            (Query.removeOldNotices, ["notices_settled (<expr><?)"]),
            (Query.endedTombstones, ["users_by_deletion (deleted_until<?)", "sqlite_autoindex_grants_1 (user_id=?)"]),
            (Query.removeEvents, ["grant_events_by_grant (grant_id=?)", "sqlite_autoindex_grants_1 (user_id=?)"]),
            (
                SQLiteTransaction.trimEvents,
                ["grant_events_by_grant (grant_id=? AND seq<?)", "grant_events_by_grant (grant_id=?)"]
            ),
            (Query.pendingNotices, ["notices USING INDEX notices_due (next_try_at>?)"]),
            (Query.insertNotice, ["notices_by_user (user_id=?)"]),
            (Query.endSessionsOfUser, ["INDEX sessions_by_user (user_id=?)"]),
            (Query.removeGrant, ["grants USING INDEX sqlite_autoindex_grants_1 (user_id=?)"]),
            (Query.removeUser, ["users USING PRIMARY KEY (user_id=?)"]),
            (Query.followNotice, ["notices USING INTEGER PRIMARY KEY (rowid=?)", "notices_by_user (user_id=?)"]),
            (Query.finishedNotices, ["notices_by_time (at>?)"]),
            (Query.replayNotices, ["notices_by_user (user_id=?)"]),
            (Query.scheduleFirstNotices, ["notices_by_user (user_id=?)", "notices_by_user (user_id=? AND seq<?)"]),
        ]
    )
    func steps(query: Query, indexes: [String]) async throws {
        let steps = try await plan(of: query)
        for index in indexes {
            #expect(steps.contains { $0.hasSuffix(index) }, "\(steps)")
        }
        let scans = steps.filter { $0.hasPrefix("SCAN") && !$0.hasPrefix("SCAN (subquery") && !$0.contains("INDEX") }
        #expect(scans.isEmpty, "\(steps)")
    }

    @Test("A claim looks its grants up by id", arguments: Query.claimable + Query.claimableAnyTime)
    func claims(query: Query) async throws {
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
        let update = GrantRow.extent(of: grant, from: former).update
        let operations = try await rows(Query("operations", "EXPLAIN " + update.text), skipping: 1)
        #expect(operations.count { $0 == "IdxDelete" } == indexes)
        #expect(!operations.contains("OpenEphemeral"))
    }

    private func plan(of query: Query) async throws -> [String] {
        try await rows(Query("plan", "EXPLAIN QUERY PLAN " + query.text), skipping: 3)
    }

    /// Returns the texts in the column after the first `columns` ones.
    private func rows(_ query: Query, skipping columns: Int) async throws -> [String] {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            let texts = try await store.reader.run { connection throws(StoreError) in
                try connection.rows(query) { (row: inout Row) throws(StoreError) in
                    for _ in 0..<columns { _ = row.integer() }
                    return row.text()
                }
            }
            await store.close()
            return texts
        }
    }
}

extension Query: CustomTestStringConvertible {
    /// The query's name instead of its text.
    public var testDescription: String { name }
}
