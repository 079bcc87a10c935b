import Base

/// One statement of the survey of grants without a valid access token, and the form of its rows.
enum SampleQuestion: Sendable {
    /// How many grants of the client are due, and since when.
    case due(client: String)
    /// How many of the longest overdue ones have expired. It follows the question of how many are due.
    case expiredOverdue(client: String)
    /// The retries in a range of ids, by client and reason.
    case retries(first: Int64, last: Int64, limit: Int)

    /// What one row says.
    struct Answer: Sendable {
        let question: SampleQuestion
        let client: String
        let count: Int
        var expired = 0
        let oldest: Timestamp?
        var reason: GrantReason?
    }

    func statement(at now: Timestamp, queries: ScanQueries) -> SQLStatement {
        switch self {
        case .due(let client):
            SQLStatement(queries.countDue, .text(client), .time(now))
        case .expiredOverdue(let client):
            SQLStatement(
                queries.countExpiredOverdue,
                .text(client),
                .time(now),
                .limit(ExpiredGrants.Sample.limit)
            )
        case .retries(let first, let last, let limit):
            SQLStatement(.countExpiredRetries, .time(now), .integer(first), .integer(last), .limit(limit))
        }
    }

    /// Reads the columns in the order of the statement.
    func read(_ row: inout some SQLRow) -> Answer {
        switch self {
        case .due(let client):
            return Answer(question: self, client: client, count: row.count(), oldest: row.timestamp())
        case .expiredOverdue(let client):
            let count = row.count()
            let expired = row.count()
            return Answer(question: self, client: client, count: count, expired: expired, oldest: row.timestamp())
        case .retries:
            let client = row.text()
            let count = row.count()
            let expired = row.count()
            let oldest = row.timestamp()
            let reason = GrantReason(rawValue: row.text())
            return Answer(
                question: self,
                client: client,
                count: count,
                expired: expired,
                oldest: oldest,
                reason: reason
            )
        }
    }
}
