import Clocks
import Store
import Testing

@testable import SQLiteStore

@Suite("Scans keep to the indexes and off the tokens", .timeLimit(.minutes(3)))
struct SQLiteQueryPlanTests {
    @Test(
        "The plan of each scan names its index",
        arguments: [
            (Query.due, "SEARCH grants USING COVERING INDEX grants_due (due_at<?)"),
            (Query.dueAtCursor, "SEARCH grants USING COVERING INDEX grants_due (due_at=? AND id>?)"),
            (Query.dueAfterCursor, "SEARCH grants USING COVERING INDEX grants_due (due_at>? AND due_at<?)"),
            (Query.countDue, "SEARCH grants USING COVERING INDEX grants_due (due_at<?)"),
            (Query.countByState, "SCAN grants USING COVERING INDEX grants_by_state"),
            (Query.countEnding, "SEARCH grants USING INDEX grants_by_ending (refresh_expires_at<?)"),
            (Query.countIdle, "SEARCH grants USING INDEX grants_by_use (<expr><?)"),
            (Query.countKeys, "SCAN grants USING COVERING INDEX grants_by_key"),
            (Query.grantByID, "SEARCH grants USING INTEGER PRIMARY KEY (rowid=?)"),
            (Query.grantOfUser, "SEARCH grants USING INDEX sqlite_autoindex_grants_1 (user_id=?)"),
            (Query.pageOfState, "SEARCH grants USING INDEX grants_by_state (state=? AND rowid>?)"),
            (Query.eventsOfGrant, "SEARCH grant_events USING INDEX grant_events_by_grant (grant_id=?)"),
            (Query.lastConnection, "SEARCH grant_events USING INDEX grant_events_by_grant (grant_id=?)"),
            (SQLiteTransaction.hasten, "SEARCH grants USING INDEX grants_by_state (state=?)"),
            (SQLiteTransaction.selectSameAccount, "SEARCH grants USING INDEX grants_by_account (google_user_id=?)"),
            (SQLiteTransaction.selectSameEmail, "SEARCH grants USING INDEX grants_by_email (<expr>=?)"),
        ]
    )
    func plan(query: Query, expected: String) async throws {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            let steps = try await store.reader.run { connection throws(StoreError) in
                try connection.rows(Query("plan", "EXPLAIN QUERY PLAN " + query.text)) {
                    (row: inout Row) throws(StoreError) in
                    _ = (row.integer(), row.integer(), row.integer())
                    return row.text()
                }
            }
            #expect(steps == [expected])
            await store.close()
        }
    }
}

extension Query: CustomTestStringConvertible {
    /// The query's name, in place of its text.
    public var testDescription: String { name }
}
