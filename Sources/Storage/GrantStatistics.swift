package import Base

/// The numbers of grants in each state, of those that are due, and of those that might end soon.
package struct GrantStatistics: Hashable, Sendable {
    /// The time before the end of a refresh token's own lifetime at which a warning begins: long enough to reach
    /// the user.
    package static let warningBeforeEnd: Duration = .seconds(3 * 86_400)
    /// Google ends a refresh token after six months without use
    /// (https://developers.google.com/identity/protocols/oauth2#expiration).
    ///
    /// The warning begins after five.
    package static let idleBeforeWarning: Duration = .seconds(150 * 86_400)

    package static let empty = GrantStatistics()

    package var byState: [GrantState: Int] = [:]
    package var due = 0
    package var oldestDueAt: Timestamp?
    /// Connected grants whose refresh token expires soon.
    package var refreshTokensEnding = 0
    /// Those whose refresh token expires within a day.
    package var refreshTokensEndingWithinDay = 0
    /// Connected grants that were not refreshed for so long that Google might end them.
    package var idle = 0
    /// The connected grants without a valid access token.
    package var expired = ExpiredGrants()
    /// Grants of each client id whose refusal is in doubt.
    ///
    /// It is an estimate if many are `retrying`, as ``ExpiredGrants/Sample`` explains.
    package var inDoubt: [String: Int] = [:]
    /// `retrying` grants for each reason, estimated like ``inDoubt``.
    package var retryingReasons: [GrantReason: Int] = [:]
    /// How long consents of each client id last, as far as it is known.
    package var consentEnds: [String: ConsentEnds] = [:]

    /// All grants.
    package var grants: Int { byState.values.reduce(0, +) }
    /// Connected grants.
    package var connected: Int { GrantState.allCases.filter(\.isConnected).reduce(0) { $0 + byState[$1, default: 0] } }
}

extension Store {
    /// Returns the statistics with the usual limits of the warnings.
    package func grantStatistics(at now: Timestamp) async throws -> GrantStatistics {
        try await grantStatistics(
            at: now,
            refreshTokensEndingBefore: now + GrantStatistics.warningBeforeEnd,
            idleSince: now - GrantStatistics.idleBeforeWarning
        )
    }
}

/// The connected grants without a valid access token, which services cannot use.
///
/// A grant that never had an access token counts from the time since which it is in its state.
package struct ExpiredGrants: Hashable, Sendable {
    /// The expired grants of one client id.
    package struct Client: Hashable, Sendable {
        package var count: Int
        /// Since when the longest of them has no valid token.
        package var oldest: Timestamp
    }

    package private(set) var clients: [String: Client] = [:]

    package var count: Int { clients.values.reduce(0) { $0 + $1.count } }
    package var oldest: Timestamp? { clients.values.map(\.oldest).min() }

    /// Adds expired grants of a client id.
    mutating func add(_ count: Int, oldest: Timestamp, client: String) {
        guard count > 0 else { return }
        var entry = clients[client] ?? Client(count: 0, oldest: oldest)
        entry.count += count
        entry.oldest = min(entry.oldest, oldest)
        clients[client] = entry
    }
}

extension ExpiredGrants {
    /// The rows that a store reads for a count, so that it takes milliseconds with ten million grants too.
    ///
    /// No index orders grants by the end of their access token: each refresh would have to update it, and on PostgreSQL
    /// none would be a heap-only update any more. Counting without one takes 10.8 s with ten million grants. Expired
    /// grants are either `retrying`, or `active` and overdue, and both have an index. In an outage these are all
    /// grants. Above the limit a count is an estimate: the share of the expired grants among those that were read,
    /// times the number of all: 4.10 million for 4.17, in 5 ms. The oldest expired grant can be missed. `suspended`
    /// grants do not count, because their services know.
    struct Sample: Sendable {
        /// A sample reads no more grants.
        static let limit = 4096
        private static let slices: Int64 = 64

        /// Grants that the sample is of.
        let total: Int
        private(set) var examined = 0
        private(set) var parts = ExpiredGrants()
        private(set) var doubted: [String: Int] = [:]
        private(set) var counts: [GrantReason: Int] = [:]

        /// The ranges of ids to read, and the number of grants to read in each.
        ///
        /// The ids of grants are ordered by the phase of their due time. Grants with neighbouring ids expire together,
        /// so a large set is read in slices.
        var ranges: [(first: Int64, last: Int64, limit: Int)] {
            guard total > Self.limit else { return [(0, .max, Self.limit)] }
            let width = Int64.max / Self.slices + 1
            return (0..<Self.slices).map { index in
                (index * width, index * width + (width - 1), Self.limit / Int(Self.slices))
            }
        }

        /// Records grants of one client id that were read: how many, how many of them have expired, and since when.
        ///
        /// `reason` is the one that they all have, if it was read.
        mutating func record(
            _ count: Int,
            expired: Int,
            oldest: Timestamp?,
            reason: GrantReason? = nil,
            client: String
        ) {
            examined += count
            if let reason { counts[reason, default: 0] += count }
            if let reason, GrantReason.inDoubt.contains(reason) { doubted[client, default: 0] += count }
            if let oldest { parts.add(expired, oldest: oldest, client: client) }
        }

        /// All grants for each that was read.
        ///
        /// The number of all can be older than the sample.
        private var factor: Double { total > Self.limit && examined > 0 ? max(1, Double(total) / Double(examined)) : 1 }

        /// The grants of each client id that are in doubt.
        var inDoubt: [String: Int] { doubted.mapValues(scaled) }
        /// The grants of each reason.
        var reasons: [GrantReason: Int] { counts.mapValues(scaled) }

        private func scaled(_ count: Int) -> Int { Int((Double(count) * factor).rounded()) }

        /// Adds the expired grants to a result.
        func add(to expired: inout ExpiredGrants) {
            for (client, part) in parts.clients {
                expired.add(scaled(part.count), oldest: part.oldest, client: client)
            }
        }
    }
}

/// What the stored grants of one client id say about the life of a consent.
///
/// Google ends the refresh tokens of a Cloud project in testing seven days after the consent
/// (https://developers.google.com/identity/protocols/oauth2#expiration).
package struct ConsentEnds: Hashable, Sendable {
    static let testingLife: Duration = .seconds(7 * 86_400)
    /// An app states the lifetime in whole seconds, a moment after the consent.
    static let tolerance: Duration = .seconds(60)
    /// The ages at which a grant of a project in testing is found dead: 6.9 to 7.2 days.
    ///
    /// The refresh that finds it comes up to an hour after the end, and a doubt can add 50 minutes. A failing endpoint
    /// can delay it further. An app can also bring its token after the consent: the age then counts from its arrival.
    private static let testingAges: ClosedRange<Duration> = .seconds(596_160)...(.seconds(622_080))
    /// One or two users who left on that day are usual.
    ///
    /// Losses at this age must also be half of all. In the model of `ConsentEndsTests`, users who leave at random would
    /// raise the alarm by either rule alone.
    static let minimumLosses = 3
    /// How long a loss counts.
    package static let period: Duration = .seconds(30 * 86_400)
    /// The latest losses that a store reads, so that the query takes milliseconds after a mass revocation too.
    static let maximumLosses = 4096

    /// The connected grants whose refresh token was said to live for seven days when it came.
    package var announced = 0
    /// The ages at which Google ended grants in the last 30 days, the latest first.
    package var losses: [Duration] = []

    package init() {}

    /// The grants that speak for a project in testing, or 0 if it is none.
    package var grantsInTesting: Int {
        guard announced == 0 else { return announced }
        let count = losses.count { Self.testingAges.contains($0) }
        return count >= Self.minimumLosses && 2 * count >= losses.count ? count : 0
    }
}

extension GrantStatistics {
    /// The client ids whose Cloud project is in testing, with a sentence about each.
    package var projectsInTesting: [(client: String, count: Int, text: String)] {
        consentEnds.sorted { $0.key < $1.key }.filter { $0.value.grantsInTesting > 0 }.map { client, ends in
            let name = DisplayedText(client)
            let text = "refresh tokens of client \(name) end seven days after the consent: publish the OAuth app"
            return (client, ends.grantsInTesting, text)
        }
    }
}

extension SQLQuery {
    static let countAnnounced = SQLQuery(
        "count tokens of seven days",
        sql: """
            SELECT client_id, count(*) FROM refresh_worker.grants /* INDEXED BY grants_by_ending */
            WHERE refresh_expires_at > $1 AND refresh_expires_at <= $2 AND state IN (\(GrantState.connectedList))
                AND refresh_expires_at - refresh_consented_at BETWEEN $3 AND $4
            GROUP BY client_id
            """
    )
    /// Leaves out grants that are refreshed again with the same consent, and counts each consent once.
    static let losses = SQLQuery(
        "ages of lost grants",
        sql: """
            SELECT client_id, lost_at - consent FROM (
                SELECT grant_id, consented_at AS consent, max(at) AS lost_at FROM (
                    SELECT grant_id, consented_at, at FROM refresh_worker.grant_events
                    WHERE consented_at IS NOT NULL AND at > $1 ORDER BY at DESC LIMIT $2
                ) AS part GROUP BY grant_id, consented_at
            ) AS part JOIN refresh_worker.grants ON id = grant_id
            WHERE state = '\(GrantState.disconnected.rawValue)' OR refresh_consented_at IS NULL
                OR refresh_consented_at <> consent
            ORDER BY lost_at DESC
            """
    )
}

extension SQLStore {
    /// Returns how long consents of each client id last, as far as it is known.
    func consentEnds(at now: Timestamp) async throws -> [String: ConsentEnds] {
        let least = ConsentEnds.testingLife - ConsentEnds.tolerance
        let most = ConsentEnds.testingLife + ConsentEnds.tolerance
        let found = try await rows(
            [
                SQLStatement(
                    .countAnnounced,
                    .time(now),
                    .time(now + most),
                    .integer(least.wholeMilliseconds),
                    .integer(most.wholeMilliseconds)
                ),
                SQLStatement(.losses, .time(now - ConsentEnds.period), .limit(ConsentEnds.maximumLosses)),
            ],
            by: .scan
        ) { index, row in (isLoss: index == 1, client: row.text(), value: row.integer()) }
        return found.reduce(into: [:]) { ends, row in
            if row.isLoss {
                ends[row.client, default: ConsentEnds()].losses.append(.milliseconds(row.value))
            } else {
                ends[row.client, default: ConsentEnds()].announced = Int(row.value)
            }
        }
    }
}
