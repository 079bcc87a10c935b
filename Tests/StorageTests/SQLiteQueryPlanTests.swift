import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Scans keep to the indexes and off the tokens", .timeLimit(.minutes(10)))
struct SQLiteQueryPlanTests {
    @Test(
        "The plan of each scan names its index",
        arguments: [
            (SQLiteStore.due, "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at<?)"),
            (
                SQLiteStore.dueAtCursor,
                "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at=? AND rowid>?)"
            ),
            (
                SQLiteStore.dueAfterCursor,
                "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at>? AND due_at<?)"
            ),
            (
                SQLiteStore.scanQueries.countDue,
                "SEARCH grants USING COVERING INDEX grants_due (client_id=? AND due_at<?)"
            ),
            (SQLQuery.countByState, "SCAN grant_counts"),
            (SQLQuery.countEnding, "SEARCH grants USING INDEX grants_by_ending (refresh_expires_at<?)"),
            (
                SQLQuery.unannounced,
                "SEARCH grants USING INDEX grants_by_ending (refresh_expires_at>? AND refresh_expires_at<?)"
            ),
            (SQLQuery.countIdle, "SEARCH grants USING INDEX grants_by_use (used_on<?)"),
            (SQLQuery.countKeys, "SCAN grants USING COVERING INDEX grants_by_key"),
            (SQLiteStore.grantQueries.byID, "SEARCH grants USING INTEGER PRIMARY KEY (rowid=?)"),
            (
                SQLiteStore.grantQueries.ofConnection,
                "SEARCH grants USING INDEX sqlite_autoindex_grants_1 (user_id=? AND connection=?)"
            ),
            (SQLiteStore.grantQueries.ofUser, "SEARCH grants USING INDEX sqlite_autoindex_grants_1 (user_id=?)"),
            (
                SQLQuery.namedConnection,
                "SCAN grants USING COVERING INDEX grants_by_connection"
            ),
            (SQLiteStore.grantQueries.pageOfState, "SEARCH grants USING INDEX grants_by_state (state=? AND rowid>?)"),
            (SQLQuery.eventsOfGrant, "SEARCH grant_events USING PRIMARY KEY (grant_id=?)"),
            (SQLQuery.lastConnection, "SEARCH grant_events USING PRIMARY KEY (grant_id=?)"),
            (
                SQLiteStore.grantQueries.sameAccount.grants,
                "SEARCH grants USING INDEX grants_by_account (google_user_id=?)"
            ),
            (SQLiteStore.grantQueries.sameEmail.grants, "SEARCH grants USING INDEX grants_by_email (<expr>=?)"),
            (
                SQLiteStore.grantQueries.ofAccount.grants,
                "SEARCH grants USING INDEX grants_by_account (google_user_id=?)"
            ),
            (
                SQLiteStore.grantQueries.byPrefixMark.grants,
                "SEARCH grants USING INDEX grants_by_prefix_mark (refresh_prefix_mark=?)"
            ),
            (
                SQLiteStore.grantQueries.byDigestMark.grants,
                "SEARCH grants USING INDEX grants_by_digest_mark (refresh_digest_mark=?)"
            ),
            (SQLQuery.userByID, "SEARCH users USING PRIMARY KEY (user_id=?)"),
            (SQLQuery.pageOfUsers, "SEARCH users USING PRIMARY KEY (user_id>?)"),
            (SQLQuery.usersByEmail, "SEARCH users USING INDEX users_by_email (<expr>=?)"),
            (SQLQuery.sessionByID, "SEARCH sessions USING PRIMARY KEY (user_id=? AND id=?)"),
            (SQLQuery.endSession, "SEARCH sessions USING PRIMARY KEY (user_id=? AND id=?)"),
            (SQLQuery.dueNotices, "SEARCH notices USING INDEX notices_due (next_try_at<?)"),
            (SQLQuery.nextNotice, "SEARCH notices USING COVERING INDEX notices_due (next_try_at>?)"),
            (SQLQuery.expediteNotices, "SEARCH notices USING COVERING INDEX notices_due (next_try_at>?)"),
            (SQLQuery.acceptNotice, "SEARCH notices USING PRIMARY KEY (user_id=? AND number=?)"),
            (SQLQuery.giveUpNotice, "SEARCH notices USING PRIMARY KEY (user_id=? AND number=?)"),
            (SQLQuery.postponeNotice, "SEARCH notices USING PRIMARY KEY (user_id=? AND number=?)"),
        ]
    )
    func plan(query: SQLQuery, expected: String) async throws {
        let steps = try await plan(of: query)
        #expect(steps.first == expected)
        let join = "SEARCH boot.leases USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"
        // Of the few grants of one user or account.
        let sort = "USE TEMP B-TREE FOR ORDER BY"
        #expect(steps.dropFirst().allSatisfy { $0 == join || $0 == sort })
    }
}

extension SQLiteQueryPlanTests {
    @Test(
        "The plan of each query of several steps uses these indexes, and scans no table",
        arguments: [
            (
                SQLiteStore.scanQueries.expedite,
                [
                    "grants USING INTEGER PRIMARY KEY (rowid=?)",
                    "grants USING INDEX grants_by_state (state=? AND rowid>?)",
                ]
            ),
            (
                SQLQuery.countExpiredRetries,
                ["grants USING INDEX grants_by_state (state=? AND rowid>? AND rowid<?)"]
            ),
            (SQLiteStore.scanQueries.countExpiredOverdue, ["grants USING INDEX grants_due (client_id=? AND due_at<?)"]),
            (
                SQLiteStore.grantQueries.ofEmail,
                [
                    "grants USING INTEGER PRIMARY KEY (rowid=?)", "grants_by_email (<expr>=?)",
                    "users_by_email (<expr>=?)", "sqlite_autoindex_grants_1 (user_id=?)",
                ]
            ),
            (SQLQuery.losses, ["grant_events_of_losses (at>?)", "grants USING INTEGER PRIMARY KEY (rowid=?)"]),
            (SQLQuery.countAnnounced, ["grants_by_ending (refresh_expires_at>? AND refresh_expires_at<?)"]),
            (
                SQLQuery.userOfAccount,
                ["users USING PRIMARY KEY (user_id=?)", "accounts USING PRIMARY KEY (google_user_id=?)"]
            ),
            (SQLQuery.sessionOfUser, ["sessions USING PRIMARY KEY (user_id=?)"]),
            (SQLQuery.removeExpiredSessions, ["sessions_by_end (expires_at<?)"]),
            (SQLQuery.removeExpiredSuccessors, ["sessions_with_successor (successor_until<?)"]),
            (SQLQuery.removeFutureSuccessors, ["sessions_with_successor (successor_until>?)"]),
            (SQLQuery.removeOldIdentifiers, ["identifiers_by_time (at<?)"]),
            (SQLQuery.trimIdentifiers, ["identifiers USING PRIMARY KEY (identifier>? AND identifier<?)"]),
            (SQLQuery.removeOldNotices, ["notices_settled (<expr><?)"]),
            (
                SQLiteStore.removeTombstones[1],
                [
                    "grant_events USING PRIMARY KEY (grant_id=?)", "sqlite_autoindex_grants_1 (user_id=?)",
                    "users_by_deletion (deleted_until<?)",
                ]
            ),
            (
                SQLiteStore.removeTombstones[2],
                ["sqlite_autoindex_grants_1 (user_id=?)", "users_by_deletion (deleted_until<?)"]
            ),
            (
                SQLiteStore.removeTombstones[3],
                ["sessions USING PRIMARY KEY (user_id=?)", "users_by_deletion (deleted_until<?)"]
            ),
            (
                SQLiteStore.removeTombstones[4],
                ["users USING PRIMARY KEY (user_id=?)", "users_by_deletion (deleted_until<?)"]
            ),
            (
                SQLiteTransaction.trimEvents,
                ["old USING PRIMARY KEY (grant_id=? AND number<?)", "grant_events USING PRIMARY KEY (grant_id=?)"]
            ),
            (SQLQuery.pendingNotices, ["notices USING INDEX notices_due (next_try_at>?)"]),
            (SQLQuery.insertNotice, ["notices USING PRIMARY KEY (user_id=?)"]),
            (SQLQuery.endSessionsOfUser, ["sessions USING PRIMARY KEY (user_id=?)"]),
            (SQLQuery.removeUser, ["users USING PRIMARY KEY (user_id=?)"]),
            (
                SQLQuery.followNotice,
                ["notices USING PRIMARY KEY (user_id=? AND number=?)", "notices USING PRIMARY KEY (user_id=?)"]
            ),
            (SQLQuery.finishedNotices, ["notices_by_time ((at,user_id,number)>(?,?,?))"]),
            (SQLQuery.replayNotices, ["notices USING PRIMARY KEY (user_id=?)"]),
            (
                SQLQuery.scheduleFirstNotices,
                ["notices USING PRIMARY KEY (user_id=?)", "older USING PRIMARY KEY (user_id=? AND number<?)"]
            ),
        ]
    )
    func steps(query: SQLQuery, indexes: [String]) async throws {
        let steps = try await plan(of: query)
        for index in indexes {
            #expect(steps.contains { $0.hasSuffix(index) }, "\(steps)")
        }
        // A subquery is called `part`; a row of parameters is a scan of a CONSTANT ROW.
        let scans = steps.filter { step in
            step.hasPrefix("SCAN") && !["SCAN part", "SCAN CONSTANT ROW"].contains(step) && !step.contains("INDEX")
        }
        #expect(scans.isEmpty, "\(steps)")
    }

    @Test("A claim looks its grants up by id", arguments: SQLiteStore.claimable + SQLiteStore.claimableAnyTime)
    func claims(query: SQLQuery) async throws {
        let steps = try await plan(of: query)
        #expect(steps.contains("SEARCH grants USING INTEGER PRIMARY KEY (rowid=?)"), "\(steps)")
        #expect(!steps.contains { $0.hasPrefix("SCAN grants") || $0.hasPrefix("USE TEMP B-TREE") }, "\(steps)")
    }

    @Test("The clients are looked up in the due index one by one")
    func clients() async throws {
        let plan = try await plan(of: SQLiteStore.scanQueries.dueClients)
        let steps = plan.filter { $0.contains("grants") }
        // The first reads one entry, at the end of the index. Only the list of clients is sorted.
        #expect(steps.count == 2, "\(steps)")
        #expect(steps.allSatisfy { $0.contains("USING COVERING INDEX grants_due") }, "\(steps)")
        #expect(steps.contains { $0.hasPrefix("SEARCH") && $0.contains("client_id<?") }, "\(steps)")
        #expect(plan.count { $0.hasPrefix("USE TEMP B-TREE") } == 1, "\(plan)")
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
        let update = SQLiteGrantRow.part(of: grant, from: former).update
        let operations = try await rows(SQLQuery("operations", sql: "EXPLAIN " + update.text), skipping: 1)
        #expect(operations.count { $0 == "IdxDelete" } == indexes)
        #expect(!operations.contains("OpenEphemeral"))
    }

    private func plan(of query: SQLQuery) async throws -> [String] {
        try await rows(SQLQuery("plan", sql: "EXPLAIN QUERY PLAN " + query.text), skipping: 3)
    }

    /// Returns the texts in the column after the first `columns` ones.
    private func rows(_ query: SQLQuery, skipping columns: Int) async throws -> [String] {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            let texts = try await store.reader.run { connection throws(StoreError) in
                try connection.rows(query) { row in
                    for _ in 0..<columns { _ = row.integer() }
                    return row.text()
                }
            }
            await store.close()
            return texts
        }
    }
}

extension SQLQuery: CustomTestStringConvertible {
    /// The query's name instead of its text.
    public var testDescription: String { name }
}
