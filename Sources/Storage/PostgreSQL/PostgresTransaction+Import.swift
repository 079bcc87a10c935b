import Base

/// What an import needs of many users at once: a round trip to read, and one to write.
extension PostgresTransaction {
    /// The users who were deleted or have disconnected.
    ///
    /// With subqueries for each user: a prepared join can have a plan from a time at which the tables were small.
    private static let formerUsers = SQLQuery(
        "former users",
        sql: """
            SELECT user_id, deleted_until, disconnected_at FROM (
                SELECT wanted.user_id,
                    (SELECT deleted_until FROM refresh_worker.users WHERE users.user_id = wanted.user_id) AS deleted_until,
                    (SELECT at FROM refresh_worker.identifiers WHERE identifier = wanted.disconnect) AS disconnected_at
                FROM unnest($1::text[], $2::text[]) AS wanted (user_id, disconnect) OFFSET 0
            ) AS found
            WHERE deleted_until IS NOT NULL OR disconnected_at IS NOT NULL
            """
    )
    /// The grants of users who were not deleted.
    ///
    /// It locks them in the order of their ids, and returns them in the order of the users: an error names the first
    /// damaged one.
    private static let grantsOfUsers = SQLQuery(
        "grants of users",
        sql: """
            WITH locked AS MATERIALIZED (
                SELECT \(grantQueries.columns) FROM \(grantQueries.source)
                WHERE user_id = ANY($1::text[])
                    AND (SELECT deleted_until FROM refresh_worker.users WHERE users.user_id = g.user_id) IS NULL
                ORDER BY id\(PostgresGrantRow.lock)
            )
            SELECT * FROM locked ORDER BY array_position($1::text[], user_id)
            """
    )
    private static let insertUsers = SQLQuery(
        "insert users",
        sql: "\(User.table.insertMany("").text) ON CONFLICT (user_id) DO NOTHING"
    )

    func standings(ofUsers ids: [String]) throws -> UserStandings {
        let disconnects = SQLValue.texts(ids.map(ImportOrder.lastDisconnect(of:)))
        let results = try send([
            SQLStatement(Self.formerUsers, .texts(ids), disconnects),
            SQLStatement(Self.grantsOfUsers, .texts(ids)),
        ])
        return try perform { () throws(StoreError) in
            var standings = UserStandings()
            _ = try results[0].rows { row in
                let userID = row.text()
                standings[userID].isDeleted = row.timestamp() != nil
                standings[userID].disconnectedAt = row.timestamp()
            }
            for grant in try results[1].rows(Grant.read) {
                stored[grant.id] = grant
                standings[grant.userID].set(grant)
            }
            return standings
        }
    }

    func insert(_ additions: [NewGrant]) throws {
        guard !additions.isEmpty else { return }
        let grants = additions.map(\.grant)
        let users = grants.map { User(id: $0.userID, createdAt: $0.createdAt) }
        let insertUsers = SQLStatement(Self.insertUsers, User.table.arrays(of: users))
        _ = try change([insertUsers] + PostgresGrantRow.insert(grants))
        for addition in additions {
            let grant = addition.grant
            stored[grant.id] = grant
            writes.count(grant.state, by: 1)
            writes.firstEvents += addition.events
            for event in addition.events {
                guard let content = Notice.content(for: event, of: grant) else { continue }
                notify(content, ofUser: grant.userID, at: event.at)
            }
        }
    }
}
